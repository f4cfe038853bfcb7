"""Loops of the value graph: counters, trip counts, and what leaves them.

In order: ``merge_exit_tests`` gives a loop one exit test, ``loop_exits`` finds the test that counts, ``closed_forms``
expresses induction variables by a counter, ``wide_indices`` takes indices of 32 bits in addresses as what they are sums of,
``carried_pointers`` turns pointers that a loop carries into indices. Before them ``ways_back`` tells which ways that no call
took come back to their loop.
"""
