"""One plan over machines: each region on this one or on another, with its times as a run there measured them.

In come the report of a run and those of runs of the same program elsewhere (``profile``), out comes the plan as the report
has it. ``table`` makes times of regions and costs of moving structures of them, by places (a machine with a layout);
``planned`` asks :mod:`layout_advise.plan.placed` for the cheapest way, and tells it. Nothing here measures.
"""
