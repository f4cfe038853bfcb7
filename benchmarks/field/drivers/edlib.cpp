// Alignments of long related sequences, with Edlib: align LENGTH.
#include "edlib.h"
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

int main(int argc, char **argv)
{
    int length = argc > 1 ? atoi(argv[1]) : 20000;
    std::mt19937 draw(23);
    std::string target, query;
    for (int i = 0; i < length; i++)
        target += "ACGT"[draw() % 4];
    for (char letter : target) {
        unsigned what = draw() % 20;
        if (what == 0)
            continue;
        query += what == 1 ? "ACGT"[draw() % 4] : letter;
        if (what == 2)
            query += "ACGT"[draw() % 4];
    }
    for (EdlibAlignMode mode : {EDLIB_MODE_NW, EDLIB_MODE_HW}) {
        EdlibAlignResult found = edlibAlign(query.data(), (int)query.size(), target.data(), length,
                                            edlibNewAlignConfig(-1, mode, EDLIB_TASK_DISTANCE, nullptr, 0));
        printf("distance %d\n", found.editDistance);
        edlibFreeAlignResult(found);
    }
    return 0;
}
