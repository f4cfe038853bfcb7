/* Temperature of a chip, a five-point stencil as in Hotspot of Rodinia. SPDX-License-Identifier: MIT */
typedef struct {
    float now, next, power, ambient;
} cell;

__kernel void advance(__global cell *cells, int width, int height)
{
    const int x = get_global_id(0), y = get_global_id(1), i = y * width + x;
    const float here = cells[i].now;
    const float up = cells[max(y - 1, 0) * width + x].now, down = cells[min(y + 1, height - 1) * width + x].now;
    const float left = cells[y * width + max(x - 1, 0)].now, right = cells[y * width + min(x + 1, width - 1)].now;
    cells[i].next = here + 0.1f * (up + down + left + right - 4 * here) + 0.05f * cells[i].power
        + 0.01f * (cells[i].ambient - here);
}

__kernel void settle(__global cell *cells)
{
    const size_t i = get_global_id(0);
    cells[i].now = cells[i].next;
}
