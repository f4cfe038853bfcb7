"""The lifter: in comes a region of machine code, out comes :class:`layout_advise.mockup.ir.lifted.Lifted`.

``lift`` calls the steps in this order: ``inline_calls`` makes the control flow (``flow``, ``reducible``); ``build_ssa``
translates it to a value graph in SSA form (``ssa``, ``translate``, ``machine_state``, ``calls``, ``runtime_arguments``);
``loops`` finds trip counts and closed forms; ``retype`` gives values their types; ``schedule`` places them in blocks;
``structuring`` and ``statements`` write statements; ``native_code`` is what stays the original's.
"""
