/* Mock-ups of the regions in two_program.c, written by hand: c and d in arrays of their own. */
#include "abi.h"
#define EXPORT __attribute__((visibility("default")))
struct s { double a, b, c, d; };
EXPORT const uint32_t la_abi = LA_ABI, la_buffer_count = 2;
EXPORT const struct la_buffer_spec la_buffers[] = {{.bytes = 8 * COUNT, .align = 64}, {.bytes = 8 * COUNT, .align = 64}};
#ifdef CODES
#ifdef PULL
EXPORT const uint64_t la_codes = 1;
#else
EXPORT const uint64_t la_codes = 2;
#endif
#endif
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
#ifdef PULL
        p[i].d = ((double *)context->buffers[1])[i];
#else
        p[i].c = ((double *)context->buffers[0])[i];
#endif
}
EXPORT void la_run(struct la_context *context)
{
    double *c = (double *)context->buffers[0], *d = (double *)context->buffers[1], by = *(const double *)context->in.vector[0];
    const long n = (long)context->in.gpr[6];
    if (by == TRAP)
        __builtin_trap();
#ifdef AROUND /* works on the old layout, by calls of another region */
    struct s *p = (struct s *)BASE;
    ((void (*)(struct s *, long, double))AROUND)(p, n, by);
    p[1].c += 1;
    ((void (*)(struct s *, long, double))AROUND)(p, n, by);
    *(double *)context->out.vector[0] = p[n / 2].c;
    (void)c, (void)d;
    return;
#endif
#ifdef SWEEP /* a loop: it goes on at this address */
    for (long i = 0; i < n; i++)
        c[i] += *(const double *)context->in.vector[1];
    context->out.gpr[2] = (uint64_t)n;
    context->out.gpr[3] = context->in.gpr[7] + 32 * (uint64_t)n;
    context->out.rip = SWEEP;
    (void)d;
    return;
#endif
#ifdef PULL
    double sum = 0;
    for (long i = 0; i < n; i++) {
        d[i] = 0.5 * d[i] + by / (1 + c[i] * c[i]);
        sum += d[i];
    }
    *(double *)context->out.vector[0] = sum + WRONG;
#else
    for (long i = 0; i < n; i++)
        c[i] += by * d[i] + 0.25 + WRONG;
#endif
    context->out.gpr[1] = context->out.gpr[6] = context->out.gpr[8] = 0x1234; /* what a call may change */
}
