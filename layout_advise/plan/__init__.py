"""One plan for a structure over all regions that use it: the mathematics.

In come what an entry of each region costs in each layout, what conversions cost, and the order in which the regions run;
out comes the cheapest way through them. ``region_order`` is the folded order, ``cheapest`` the shortest path through it,
``placed`` that over devices and copies of structures, ``whole_program`` carries intervals of regions over to the program,
``structure_plan`` chooses the plan of some structures, for ``layout_advise/regions/planned.py``. Nothing here measures: all
are functions from data to data.
"""
