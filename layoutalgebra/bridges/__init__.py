"""Layouts in other notations: C declarations and accessors, NumPy, CuTe, LLAMA and Kokkos, printed index maps.

In: a structure or a candidate's layout. Out: text, arrays or names. Every module stands by itself; ``declarations`` has the
identifiers of C and the names of indices that the others use.
"""
