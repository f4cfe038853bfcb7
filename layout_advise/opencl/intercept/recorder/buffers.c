/* Calls that make memory, read it and write it. */
#define _GNU_SOURCE
#include "recorder.h"

handle clCreateBuffer(handle context, uint64_t flags, size_t bytes, void *data, int *error)
{
    NEXT(clCreateBuffer)
    handle made = real(context, flags, bytes, data, error);
    know_memory(made, BUFFER, bytes, (flags & USES_HOST_DATA) != 0);
    return made;
}

handle clCreateBufferWithProperties(handle context, const uint64_t *properties, uint64_t flags, size_t bytes, void *data,
                                   int *error)
{
    NEXT(clCreateBufferWithProperties)
    handle made = real(context, properties, flags, bytes, data, error);
    know_memory(made, BUFFER, bytes, (flags & USES_HOST_DATA) != 0);
    return made;
}

handle clCreateSubBuffer(handle buffer, uint64_t flags, uint32_t type, const void *region, int *error)
{
    NEXT(clCreateSubBuffer)
    handle made = real(buffer, flags, type, region, error);
    know_memory(made, PART_OF_BUFFER, 0, 0);
    return made;
}

handle clCreateImage(handle context, uint64_t flags, const void *format, const void *shape, void *data, int *error)
{
    NEXT(clCreateImage)
    handle made = real(context, flags, format, shape, data, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreateImageWithProperties(handle context, const uint64_t *properties, uint64_t flags, const void *format,
                                  const void *shape, void *data, int *error)
{
    NEXT(clCreateImageWithProperties)
    handle made = real(context, properties, flags, format, shape, data, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreateImage2D(handle context, uint64_t flags, const void *format, size_t width, size_t height, size_t row,
                       void *data, int *error)
{
    NEXT(clCreateImage2D)
    handle made = real(context, flags, format, width, height, row, data, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreateImage3D(handle context, uint64_t flags, const void *format, size_t width, size_t height, size_t depth,
                       size_t row, size_t slice, void *data, int *error)
{
    NEXT(clCreateImage3D)
    handle made = real(context, flags, format, width, height, depth, row, slice, data, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreateSampler(handle context, uint32_t normalized, uint32_t addressing, uint32_t filter, int *error)
{
    NEXT(clCreateSampler)
    handle made = real(context, normalized, addressing, filter, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreateSamplerWithProperties(handle context, const uint64_t *properties, int *error)
{
    NEXT(clCreateSamplerWithProperties)
    handle made = real(context, properties, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreatePipe(handle context, uint64_t flags, uint32_t packet, uint32_t most, const void *properties, int *error)
{
    NEXT(clCreatePipe)
    handle made = real(context, flags, packet, most, properties, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

int clEnqueueReadBuffer(handle queue, handle buffer, uint32_t blocking, size_t offset, size_t bytes, void *to,
                        uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueReadBuffer)
    host_touched(buffer, 'r');
    return real(queue, buffer, blocking, offset, bytes, to, waits, wait, event);
}

int clEnqueueWriteBuffer(handle queue, handle buffer, uint32_t blocking, size_t offset, size_t bytes, const void *from,
                         uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueWriteBuffer)
    host_touched(buffer, written(buffer, offset, bytes));
    return real(queue, buffer, blocking, offset, bytes, from, waits, wait, event);
}

void *clEnqueueMapBuffer(handle queue, handle buffer, uint32_t blocking, uint64_t flags, size_t offset, size_t bytes,
                         uint32_t waits, const handle *wait, handle *event, int *error)
{
    NEXT(clEnqueueMapBuffer)
    char how = flags & (MAPPED_TO_WRITE | MAPPED_ANEW) ? 'c' : 'r';
    if (flags & MAPPED_ANEW)
        how = written(buffer, offset, bytes);
    host_touched(buffer, how);
    return real(queue, buffer, blocking, flags, offset, bytes, waits, wait, event, error);
}

int clEnqueueCopyBuffer(handle queue, handle from, handle to, size_t from_offset, size_t to_offset, size_t bytes,
                        uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueCopyBuffer)
    something_else();
    return real(queue, from, to, from_offset, to_offset, bytes, waits, wait, event);
}

int clEnqueueCopyBufferRect(handle queue, handle from, handle to, const size_t *from_offset, const size_t *to_offset,
                            const size_t *region, size_t from_row, size_t from_slice, size_t to_row, size_t to_slice,
                            uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueCopyBufferRect)
    something_else();
    return real(queue, from, to, from_offset, to_offset, region, from_row, from_slice, to_row, to_slice, waits, wait, event);
}

int clEnqueueCopyImageToBuffer(handle queue, handle from, handle to, const size_t *origin, const size_t *region,
                               size_t offset, uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueCopyImageToBuffer)
    something_else();
    return real(queue, from, to, origin, region, offset, waits, wait, event);
}

int clEnqueueTask(handle queue, handle kernel, uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueTask)
    something_else();
    return real(queue, kernel, waits, wait, event);
}

int clEnqueueFillBuffer(handle queue, handle buffer, const void *pattern, size_t size, size_t offset, size_t bytes,
                        uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueFillBuffer)
    something_else();
    return real(queue, buffer, pattern, size, offset, bytes, waits, wait, event);
}

int clEnqueueReadBufferRect(handle queue, handle buffer, uint32_t blocking, const size_t *offset, const size_t *host_offset,
                            const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice, void *to,
                            uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueReadBufferRect)
    host_touched(buffer, 'r');
    return real(queue, buffer, blocking, offset, host_offset, region, row, slice, host_row, host_slice, to, waits, wait,
                event);
}

int clEnqueueWriteBufferRect(handle queue, handle buffer, uint32_t blocking, const size_t *offset, const size_t *host_offset,
                             const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice,
                             const void *from, uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueWriteBufferRect)
    host_touched(buffer, 'c');
    return real(queue, buffer, blocking, offset, host_offset, region, row, slice, host_row, host_slice, from, waits, wait,
                event);
}
