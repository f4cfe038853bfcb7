/* One stage of a bitonic sort, keys apart from what goes with them. SPDX-License-Identifier: MIT */
typedef struct {
    uint value;
    float weight;
    uint next;
} rest;

__kernel void stage(__global uint *keys, __global rest *rests, uint distance, uint block)
{
    const uint t = get_global_id(0);
    const uint low = t / distance * 2 * distance + t % distance, high = low + distance;
    const uint a = keys[low], b = keys[high];
    const int up = (low & block) == 0;
    if ((a > b) == up) {
        const rest other = rests[low];
        keys[low] = b;
        keys[high] = a;
        rests[low] = rests[high];
        rests[high] = other;
    }
}
