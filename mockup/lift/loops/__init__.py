"""Loops of the value graph: counters, trip counts, and what leaves them.

In order: ``merge_exit_tests`` merges copied tests at the bottom of a loop, ``closed_forms`` finds induction variables and
trip counts, ``carried_pointers`` turns pointers that a loop carries into indices, ``loop_exits`` gives the values after it.
"""
