"""Bridges to what others use: NumPy, CuTe's shape:stride, C and C++ source, names in LLAMA and Kokkos."""
