"""Running programs: starting them, stopping them, reading their memory.

``agent`` compiles the preloaded agent (C, in ``tracer/agent``), ``launch`` starts the program with it, ``channel``
talks to it, ``patching`` plans the jump at the hotspot's entry, ``stopped_program`` is the protocol of a stopped
instance, ``block_table`` reads the agent's heap blocks. Under ptrace: ``tracee``, ``ptraced`` and ``seized``, with
``xstate`` for vector registers. ``procfs`` reads /proc, ``disk_space`` asks for room.
"""
