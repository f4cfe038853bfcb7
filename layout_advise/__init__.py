"""The application: from a command line to a report, one room a stage.

``cli`` parses and catches errors, ``commands/`` holds a file a subcommand. ``checks`` looks at the program before
anything runs, ``rundir`` opens the run directory, and ``pipeline`` goes the road from the first stage to the last:
``choose/`` → ``observe/`` → ``propose/`` → ``build/`` → ``verify/`` → ``measure/`` → ``decide/`` → ``describe/``. Each
stage takes frozen values of the stages before it and returns one. ``config`` (settings), ``machine`` (cores, caches),
``progress`` and ``errors`` serve all of them; ``lift_survey`` is the work behind ``doctor --lift``.
"""

__version__ = "0.1.0"
