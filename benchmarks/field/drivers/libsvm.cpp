// A support-vector classifier of two overlapping clouds, with LIBSVM: train SAMPLES FEATURES.
#include "svm.h"
#include <cstdio>
#include <cstdlib>
#include <vector>

static double draw()
{
    static unsigned long long x = 23;
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    return (x >> 11) * (1.0 / 9007199254740992.0);
}

static void quiet(const char *) {}

int main(int argc, char **argv)
{
    int samples = argc > 1 ? atoi(argv[1]) : 4000, features = argc > 2 ? atoi(argv[2]) : 30;
    std::vector<svm_node> nodes;
    std::vector<double> labels;
    for (int i = 0; i < samples; i++) {
        labels.push_back(i % 2 ? 1 : -1);
        for (int k = 0; k < features; k++)
            nodes.push_back({k + 1, draw() + draw() + draw() - 1.5 + 0.12 * labels.back()});
        nodes.push_back({-1, 0});
    }
    std::vector<svm_node *> rows;
    for (int i = 0; i < samples; i++)
        rows.push_back(&nodes[i * (size_t)(features + 1)]);
    svm_problem problem = {samples, labels.data(), rows.data()};
    svm_parameter how = {};
    how.svm_type = C_SVC;
    how.kernel_type = RBF;
    how.gamma = 0.05;
    how.C = 8;
    how.cache_size = 100;
    how.eps = 1e-3;
    how.shrinking = 1;
    svm_set_print_string_function(quiet);
    svm_model *model = svm_train(&problem, &how);
    int right = 0;
    for (int i = 0; i < samples; i++)
        right += svm_predict(model, rows[i]) == labels[i];
    printf("%d support vectors, %d right\n", model->l, right);
    return 0;
}
