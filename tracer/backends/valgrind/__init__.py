"""Tracing under Valgrind, with a tool of our own (``tool/``, a separate program under the GPL).

It serves what the clone cannot: code that cannot be copied, exceptions and jumps out of the hotspot, calls into
libraries, statically linked programs. In order: ``install`` finds Valgrind, ``build`` compiles the tool at first use,
``run`` runs the program under it, ``record`` makes the trace. The program runs in another process than the parked one,
so its addresses are translated (``layout_advise.tracer.folding.relocate``).
"""
