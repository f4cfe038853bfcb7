"""The lifter: from machine code to structured, typed statements.

In comes a region, out comes a :class:`~layout_advise.mockup.ir.lifted.Lifted`. ``lift`` runs the steps in order:
``inline_calls`` makes the ``flow`` (every loop with one entry, by ``reducible``), ``ssa`` builds static single assignment
over ``machine_state`` while ``translate`` turns effects into values (``calls`` and ``runtime_arguments`` for what stays a
call), ``retype`` gives values their types, ``loops/`` gives loops counters and trip counts, ``schedule`` places values,
``structuring`` and ``statements`` write loops, branches and statements.
"""
