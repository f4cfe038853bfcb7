"""A layout as source that is ready to paste, in languages and libraries other than C and C++ (``bridges/source``).

In: a relayout. Out: text. ``mdspan`` (C++23), ``cpp_libraries`` (LLAMA, Kokkos) and the Rust of ``systems`` (crate
soa_derive) use names of these libraries and refuse what they have none for; Zig and Odin of ``systems`` compute addresses,
as C does; ``numpy_source`` makes strided views in Python. ``scalars`` holds what they share.
"""
