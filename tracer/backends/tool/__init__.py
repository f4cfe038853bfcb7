"""Traces by tools that run the whole program once more (Valgrind, Pin): ``run`` runs them, ``result`` and ``order`` read
what they leave, ``trace`` makes a trace in the parked program's addresses of it."""
