"""Loops of the value graph, in this order: ``merge_exit_tests`` gives a loop one exit test, ``loop_exits`` finds the test
that counts, ``closed_forms`` expresses induction variables by a counter, ``carried_pointers`` makes pointers indices."""
