"""Tracing by an instrumented copy of the hotspot, run in a copy of the parked process.

In comes the hotspot's code, out come raw records of its accesses. ``segments`` cuts the code into runs that record under
one check, ``address`` finds room for the copy, ``assembler`` encodes the instructions that it adds, ``relocated`` the
original ones, ``lane_code`` those for gathers and masked moves, ``chunk`` counts the iterations of a loop, ``header``,
``dispatcher`` and ``image`` lay the whole copy down. ``record`` runs it for one thread and folds, ``record_team`` for the
threads of a parallel region, with ``records`` for their files; ``backend`` offers both.
"""
