"""The traced process, from outside: how it is started, commanded through the agent, read and stepped.

``launch`` starts a program with the agent (``agent`` compiles it, ``patching`` plans the jump at the hotspot's entry,
``channel`` is the wire, ``agent_run`` one whole run). ``ptrace`` is the kernel's interface; ``tracee`` and ``ptraced`` step
a child, ``seized`` takes over a parked program. ``stopped_program`` is the protocol of a program at its hotspot's entry.
"""
