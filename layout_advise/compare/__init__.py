"""Two runs held against each other (``layout-advise compare``, ``trace --baseline``).

In come two reports, out goes what changed. ``match`` finds the same regions and structures by their names in the source,
``times`` tells how much faster a region became, ``runs`` compares all of two runs and ``pages`` prints it. ``arrangement``
recognises a layout of the older run in the structures of the newer one, ``dimensions`` one in plain arrays, ``applied``
notes what ``apply`` wrote, ``confirm`` writes that into the newer report. Limits are in ``policy``.
"""
