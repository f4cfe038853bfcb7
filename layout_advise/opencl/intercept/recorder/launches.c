/* Calls that launch kernels. */
#define _GNU_SOURCE
#include "recorder.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int clFinish(handle queue);
int clGetEventInfo(handle event, uint32_t what, size_t bytes, void *value, size_t *needed);
int clWaitForEvents(uint32_t count, const handle *events);

/* Waits for what a launch waits for; 0 where the program itself must set one of the events, which may come later. */
static int waited(uint32_t count, const handle *events)
{
    if (count == 0)
        return 1;
    void *symbols[] = {next("clGetEventInfo"), next("clWaitForEvents")};
    __typeof__(&clGetEventInfo) ask;
    __typeof__(&clWaitForEvents) wait;
    memcpy(&ask, &symbols[0], sizeof ask);
    memcpy(&wait, &symbols[1], sizeof wait);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t type = USER_EVENT;
        if (ask(events[k], COMMAND_TYPE, sizeof type, &type, NULL) != 0 || type == USER_EVENT)
            return 0;
    }
    return wait(count, events) == 0;
}

static void note_launch(const struct kernel *kernel, size_t number)
{
    char line[MOST_ARGUMENTS * 24] = "";
    size_t used = 0;
    for (unsigned k = 0; k < kernel->count; k++) {
        const struct argument *one = &kernel->arguments[k];
        const struct memory *memory = NULL;
        if (one->value != NULL && one->bytes == sizeof(handle))
            memory = memory_of(*(handle *)one->value);
        if (memory != NULL && memory->kind == BUFFER)
            used += (size_t)snprintf(line + used, sizeof line - used, " %" PRIu64, memory->serial);
    }
    note("k %zu%s\n", number, line);
}

int clEnqueueNDRangeKernel(handle queue, handle id, uint32_t dimensions, const size_t *offset, const size_t *global,
                           const size_t *local, uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueNDRangeKernel)
    __typeof__(&clFinish) drain;
    void *symbol = next("clFinish");
    int is_new = 0;
    memcpy(&drain, &symbol, sizeof drain);
    pthread_mutex_lock(&lock);
    struct kernel *kernel = getenv("LAYOUT_ADVISE_RECORD") != NULL && waited(waits, wait) ? kernel_of(id) : NULL;
    struct use *use = kernel != NULL ? use_of(kernel, &is_new) : NULL;
    if (use == NULL) {
        note("o\n");
        pthread_mutex_unlock(&lock);
        return real(queue, id, dimensions, offset, global, local, waits, wait, event);
    }
    drain(queue);
    if (is_new)
        write_launch((int)(use - uses), kernel, queue, dimensions, offset, global, local);
    note_launch(kernel, (size_t)(use - uses));
    if (use->epoch != epoch)
        use->rounds++;
    use->epoch = epoch;
    double start = now();
    int result = real(queue, id, dimensions, offset, global, local, waits, wait, event);
    drain(queue);
    use->seconds += now() - start;
    use->calls++;
    if ((use->calls & (use->calls - 1)) == 0) {
        write_counts();
        if (order != NULL)
            fflush(order);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
