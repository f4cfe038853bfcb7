"""Traces made of the files that tools running a whole program (Valgrind, Pin) leave.

``run`` finds their files, ``result`` reads them, ``order`` gives the order of execution by references, ``trace``
translates all to the parked program's addresses.
"""
