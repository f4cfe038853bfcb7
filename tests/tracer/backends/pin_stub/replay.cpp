/* Plays recorded accesses through tracer/backends/pin/report.cpp as the Pin tool would: replay FOLDER CALL OUTCOME CAP < words.
 * The words: 20 registers, then pc, ordinal, kind, bytes, address for each access. SPDX-License-Identifier: MIT */
#include "report.h"

#include <cstdio>
#include <cstdlib>

using namespace layout_advise;

int main(int argc, char **argv)
{
    static state kept;
    uint64_t word[5];
    outcome how = argc > 4 ? outcome(atoi(argv[3])) : NEVER;

    kept.folder = argv[1];
    kept.calls = strtoull(argv[2], 0, 10);
    kept.cap = strtoull(argv[4], 0, 10);
    if (fread(kept.registers, 8, 20, stdin) != 20)
        return 1;
    while (fread(word, 8, 5, stdin) == 5)
        if (!add(kept, find_reference(word[0], word[1], kind(word[2]), word[3]), word[4])) {
            how = TRUNCATED;
            break;
        }
    return !write_result(kept, how, "");
}
