"""From raw records to folded streams, and from one process' addresses to another's.

``fold`` gives each reference its loop nests (the algorithm is in ``tracer/nlr``), ``clusters`` the sets of addresses that
lie far apart, ``rejoin`` folds again what was folded in pieces, ``execution_order`` folds the order in which the code ran.
``merge_threads`` makes one trace of a team's, ``relocate`` translates addresses between two runs of a program.
"""
