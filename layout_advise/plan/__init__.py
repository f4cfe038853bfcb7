"""One plan for a structure over all regions that use it: the mathematics.

In come what an entry of each region costs in each layout, what conversions cost, and the order in which the regions run; out
comes the cheapest way through them. ``region_order`` is the folded order, ``cheapest`` the shortest path through it,
``whole_program`` carries intervals of regions over to the program. Nothing here measures, and no run uses it yet: all are
functions from data to data.
"""
