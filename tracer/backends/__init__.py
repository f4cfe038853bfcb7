"""Ways of tracing one call of the hotspot.

``protocol`` says what a backend is. In goes a request (a parked program, the hotspot's code, limits), out comes a trace in
the parked program's addresses. ``clone`` runs an instrumented copy of the code in a fork, ``valgrind`` and ``pin`` run the
program again under a tool (``tool`` reads what these leave), ``step`` single-steps another run. ``registry`` lists them.
"""
