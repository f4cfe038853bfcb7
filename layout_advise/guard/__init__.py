"""The layout that a gain rests on, written down so that every build can be held against it (``layout-advise guard``).

In comes the report of a run and the program it is of, out goes a small text file (``guard_file``, made by
``from_run``).
``check`` holds a build's debug information against it; ``again`` times the regions once more; ``words`` prints what was
found. Limits are in ``policy``.
"""
