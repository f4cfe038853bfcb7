"""Layouts in other notations.

In: a structure or a candidate's layout. Out: text, arrays or names. ``declarations`` and ``source`` (C and C++, to read
and to compile), ``changes`` (C as a diff against today's source), ``arrays`` (NumPy), ``cute`` (``shape:stride``),
``names`` (LLAMA, Kokkos), ``printed_maps`` (index maps as expressions). Sources in other languages are in ``languages/``.
Every module stands by itself; ``declarations`` has the identifiers of C and the names of indices that the others use.
"""
