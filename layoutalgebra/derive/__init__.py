"""From the accesses to a memory object to its structure and its exact term.

In: ``accesses`` (folded streams) and the ``declared`` type. Out: a ``structure`` and a term. ``derive`` calls, in
this order, ``elements`` (the size of an element, with ``undeclared_records``), ``atoms`` (its fields), ``grids`` (its
dimensions) and ``exact_terms``. ``stream_terms`` derives a term of streams alone, ``companion_arrays`` finds records
by what is used beside them, ``other_sizes`` tells the same structure with other sizes, ``chosen_elements`` tells
irregularly chosen elements, and ``scattered_elements`` says where those lie that are on no grid.
"""
