"""Machine code of a region, decoded: in comes a region of a binary, out come blocks of instructions and their effects.

``disassembly`` decodes instructions, ``image`` reads the ELF file around them; ``cfg`` makes basic blocks (``jump_tables``
resolves indirect jumps); ``semantics`` gives the effects of an instruction, ``conditions`` reads flags, ``call_abi`` and
``openmp_runtime`` describe calls, ``call_arguments`` what a callee takes and ``kernel_effects`` what cannot be done again.
Over the graph ``liveness`` and ``entry_values`` analyse registers, and ``loop_regions``
picks the loop nests that can be regions by themselves.
"""
