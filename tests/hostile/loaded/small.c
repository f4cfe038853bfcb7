/* One of a thousand libraries; they differ by the names of their files only. */
static long called;

long small(long number)
{
    return number + ++called;
}
