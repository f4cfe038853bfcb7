/* A mock-up of the hotspot in live_program.c, written by hand: c, and d where it is written, in arrays of their own. */
#include "abi.h"
#define EXPORT __attribute__((visibility("default")))
struct s { double a, b, c, d; };
EXPORT const uint32_t la_abi = LA_ABI, la_buffer_count = 2;
EXPORT const struct la_buffer_spec la_buffers[] = {{.bytes = 8 * COUNT, .align = 64}, {.bytes = 8 * COUNT, .align = 64}};
EXPORT void la_copy_in(struct la_context *context)
{
    const struct s *p = (const struct s *)BASE;
    for (long i = 0; i < COUNT; i++) {
        ((double *)context->buffers[0])[i] = p[i].c;
        ((double *)context->buffers[1])[i] = p[i].d;
    }
}
EXPORT void la_copy_out(struct la_context *context)
{
    struct s *p = (struct s *)BASE;
    for (long i = 0; i < COUNT; i++)
        p[i].d = ((double *)context->buffers[1])[i];
}
EXPORT void la_run(struct la_context *context)
{
    const double *c = (const double *)context->buffers[0], scale = *(const double *)context->in.vector[0];
    const int *at = (const int *)context->in.gpr[6];
    double *d = (double *)context->buffers[1], sum = 0;
    if (scale == TRAP)
        __builtin_trap();
    if (scale == FAR)
        at = (const int *)4096; /* a pointer that leads to where nothing is */
    for (long i = 0; i < (long)context->in.gpr[2]; i++) {
        sum += (c[at[i]] + WRONG) * scale;
#ifdef WRITES
        d[at[i]] += sum;
#else
        (void)d;
#endif
    }
    *(double *)context->out.vector[0] = sum;
    context->out.gpr[1] = context->out.gpr[6] = context->out.gpr[8] = 0x1234; /* what a call may change */
}
