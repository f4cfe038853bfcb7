/* One stage of a bitonic sort, an array for each member of the records. SPDX-License-Identifier: MIT */
__kernel void stage(__global uint *key, __global uint *value, __global float *weight, __global uint *next, uint distance,
    uint block)
{
    const uint t = get_global_id(0);
    const uint low = t / distance * 2 * distance + t % distance, high = low + distance;
    const uint low_key = key[low], high_key = key[high];
    const int up = (low & block) == 0;
    if ((low_key > high_key) == up) {
        const uint v = value[low], n = next[low];
        const float w = weight[low];
        key[low] = high_key;
        key[high] = low_key;
        value[low] = value[high];
        value[high] = v;
        weight[low] = weight[high];
        weight[high] = w;
        next[low] = next[high];
        next[high] = n;
    }
}
