"""From parsed C and a new layout to new source, or to the places that stand in the way.

``parse`` reads a translation unit with libclang into the frozen nodes of ``syntax``; all that follows is a function of
them. ``target`` is the record with its members (``fields``) in groups, ``program`` an index over all units.
``expressions`` (with ``calls``, ``allocations``, ``members`` for addresses of members, and ``type_mentions``) makes the
edits for a split layout, ``order`` those where only the order of the members changes, with ``aligned`` for padded elements.
``record`` makes the edits of the declaration, ``helpers/`` the functions that the new source needs. ``rewrite`` puts it
together.
"""
