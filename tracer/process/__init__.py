"""Running programs: starting them, stopping them, reading their memory.

``agent`` compiles the preloaded agent (C, in ``tracer/agent``; ``build_cache`` keeps what is compiled at first use,
``compiler_run`` leaves nothing of a compiler that is stopped), ``launch`` starts the program with it, ``channel`` talks to
it (``agent_run`` for one whole run), ``patching`` plans the jump at the hotspot's entry, ``stopped_program`` is the protocol
of a stopped instance. ``ptrace`` is the kernel's interface; under it: ``tracee``, ``ptraced`` and ``seized``, with
``xstate`` for vector registers. ``procfs`` reads /proc, ``disk_space`` asks for room. ``tracer/offspring`` ends what a
program leaves running.
"""
