"""Sets of offsets, and the addresses of folded streams as such sets.

In: loop nests of a trace. Out: index sets and boxes of addresses. ``index_set``, ``set_operations`` and ``products``
are sets as arithmetic progressions, ``nests`` the folded streams, ``footprints`` and ``spans`` what these touch, and
``index_expressions`` the integer expressions of which index maps are made.
"""
