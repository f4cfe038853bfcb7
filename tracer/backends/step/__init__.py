"""Tracing by single steps: slow, and independent of all other backends.

In comes the command, out comes a trace in the parked program's addresses. ``single_steps`` computes the effective
addresses from the registers, ``record`` steps another run of the program through the call.
"""
