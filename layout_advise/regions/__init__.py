"""The regions of a run, one after the other until most of the samples have an answer.

In comes the hotspot that sampling has chosen, out comes the region that the report is of, with those that gave no answer.
``several`` says which region is next, ``one`` makes the case of a region and takes its study up again where it asks for
that, ``looked`` says what may do in the place of one without an answer. Where several are wanted, ``survey`` says which
ones and what they have in common, ``beside`` studies them, ``logged_order`` says in which order they run,
``over_regions`` what their layouts gain in the whole program, ``planned`` makes the plan of it, which ``seen_users`` gives
what else was seen to use the structures, and ``live_plan`` runs that in the program, whose times ``live_rounds`` compares.
``run_seconds`` is what they share for measuring, ``study_end`` ends a study that takes too long. ``whole`` tells what the
program can gain at most where regions are open by themselves. Each study goes along the road
(``layout_advise/road.py``).
"""
