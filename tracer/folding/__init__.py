"""Raw records folded into affine loop nests, and folded traces moved, merged and rejoined.

``fold`` gives a stream per reference, ``execution_order`` the order in which they ran, ``merge_threads`` one trace of a
team's; ``rejoin`` puts the first and last iterations into the loops that they stand before and behind; ``relocate`` takes a
trace from the addresses of one process to those of another.
"""
