/* Denormals count as zero. */
#include "frame.h"
#include <xmmintrin.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    _mm_setcsr(_mm_getcsr() | 0x8040);
}
