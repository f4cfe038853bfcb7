"""One plan for each structure of the program, over all regions that were studied.

In come what each region gains by each layout, how often conversions cost what, and the order in which the regions run; out
comes the cheapest way through them. ``region_order`` is the folded order, ``cheapest`` the shortest path through it,
``whole_program`` carries intervals of regions over to the program, ``advise`` makes the report's plan of the regions'
reports. Nothing here measures: all are functions from data to data (``docs/decisions/0067``).
"""
