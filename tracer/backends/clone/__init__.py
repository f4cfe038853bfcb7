"""The clone: an instrumented copy of the hotspot that records the address of every access.

``image`` lays it out (``segments``, ``lane_code``, ``dispatcher`` and ``header`` are its parts, ``assembler`` encodes),
``record`` runs it for one thread, ``record_team`` for a parallel region; ``backend`` offers both.
"""
