// A sparse system by conjugate gradients and small dense decompositions, with Eigen: solve SIDE DENSE.
#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv)
{
    int side = argc > 1 ? atoi(argv[1]) : 60, dense = argc > 2 ? atoi(argv[2]) : 300, n = side * side * side;
    std::vector<Eigen::Triplet<double>> entries;
    for (int i = 0; i < n; i++) {
        entries.emplace_back(i, i, 6.05);
        for (int step : {1, side, side * side})
            if (i + step < n) {
                entries.emplace_back(i, i + step, -1);
                entries.emplace_back(i + step, i, -1);
            }
    }
    Eigen::SparseMatrix<double, Eigen::RowMajor> a(n, n);
    a.setFromTriplets(entries.begin(), entries.end());
    Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(n, 0, 1);
    Eigen::ConjugateGradient<decltype(a), Eigen::Lower | Eigen::Upper> solver(a);
    solver.setTolerance(1e-10);
    double sum = 0;
    for (int round = 0; round < 4; round++)
        sum += (b = solver.solve(b) + Eigen::VectorXd::Ones(n)).sum();
    Eigen::MatrixXd m(dense, dense);
    for (int i = 0; i < dense; i++)
        for (int j = 0; j < dense; j++)
            m(i, j) = 1.0 / (1 + abs(i - j)) + (i * 7 + j * 3) % 11 * 1e-3;
    sum += Eigen::HouseholderQR<Eigen::MatrixXd>(m).matrixQR().diagonal().sum();
    sum += Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(m + m.transpose()).eigenvalues()(0);
    printf("sum %.9g\n", sum);
    return 0;
}
