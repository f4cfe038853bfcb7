"""Eighth stage: from what the stages found to the report's data.

In come the results of all stages, out comes the region's part of ``report.json`` (:mod:`layout_advise.reports.model`).
``studied`` holds the results, and how a study may be taken up again; ``describe`` assembles the region, ``candidate_rows``
its layouts, ``shown`` their declarations, drawings and cache lines, ``source_view`` the lines of the source,
``modelled_misses`` their cache misses, ``users_report`` who else uses a structure, ``own_uses`` which fields the region and
each of its threads use, ``assemble`` makes the rows, ``checks`` the checks of quality; the limits are in ``policy``.
"""
