"""From a parsed kernel to the field graph of each of its records (Kofler, Cosenza, Fahringer 2015).

``places`` says which expressions are memory of the host's buffers, ``bounds`` how often loops run, ``steps`` makes
the accesses of a work item of both, and ``fields`` the graph and its clusters, with the distances of
``layoutalgebra``. ``recorded`` makes it of accesses that were recorded, ``differences`` compares both. ``alike`` says which
members are accessed alike, ``elements`` of how many elements at once.
"""
