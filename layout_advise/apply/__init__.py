"""A measured layout written into the program's source (``layout-advise apply``).

In comes a report and the sources, out goes a patch that was built, run and timed. Which candidate that is, and which of
its members come together, the report's model says (``wanted`` in its room). ``sources`` finds the translation units and
their flags, ``rewrite/`` makes the new texts, ``macros`` expands uses of macros that stand in its way, ``trees`` copies
the tree, builds it and runs its program, ``formatted`` has the changes formatted as the project's own are, ``timed``
times both programs, ``region_times`` the region's calls in them, ``stage`` does all of it in order, and ``words``
prints it.
Limits are in ``policy``.
"""
