"""C++ rewritten for a split layout (``layout-advise apply``).

Types that stand for pointers and references to the record, and for arrays and vectors of it, are used in the source as
those are: so most expressions stay. ``classes`` writes these types (by ``templates``: ``pointers.hpp.j2``, or
``pool.hpp.j2`` for elements that are allocated one by one, and ``elements.hpp.j2``), ``mentions`` edits where the source
names the type, ``methods`` copies what is defined outside of the record, ``uses`` looks for what would silently mean
something else (``library``: what of the standard library does not), ``pooled`` for what a pool does not serve,
``obstacles`` names forms of a record that cannot be, ``initialisers`` brings those of constructors into the members' new
order, and ``rewrite`` puts it together.
"""
