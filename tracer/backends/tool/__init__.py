"""What the tools that run a whole program (Valgrind, Pin) leave, as a trace.

``run`` finds their files, ``result`` reads them, ``order`` gives the order of execution by references, ``trace``
translates all to the parked program's addresses.
"""
