"""C++ rewritten for a split layout (``layout-advise apply``).

Types that stand for pointers and references to the record, and for arrays and vectors of it, are used in the source as
those are: so most expressions stay. ``classes`` writes these types (by ``templates``: ``pointers.hpp.j2``,
``elements.hpp.j2``), ``mentions`` edits where the source names the type, ``methods`` copies what is defined outside
of the record, ``uses`` looks for what would silently mean something else, and ``rewrite`` puts it together.
"""
