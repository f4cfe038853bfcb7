/* One stage of a bitonic sort of records by their key; whole records change places. SPDX-License-Identifier: MIT */
typedef struct {
    uint key;
    uint value;
    float weight;
    uint next;
} entry;

__kernel void stage(__global entry *entries, uint distance, uint block)
{
    const uint t = get_global_id(0);
    const uint low = t / distance * 2 * distance + t % distance, high = low + distance;
    const entry a = entries[low], b = entries[high];
    const int up = (low & block) == 0;
    if ((a.key > b.key) == up) {
        entries[low] = b;
        entries[high] = a;
    }
}
