"""Bridges from layouts to what others use.

In come structures, terms and candidates, out come views and text: ``arrays`` (NumPy), ``cute`` (``shape:stride``),
``declarations`` (C to read), ``source`` (C and C++ to compile), ``names`` (LLAMA's mappings, Kokkos' layouts).
"""
