"""Machine code of a region, decoded: in comes a region of a binary, out come blocks of instructions and their effects.

``disassembly`` decodes instructions, ``image`` reads the ELF file around them; ``cfg`` makes basic blocks (``jump_tables``
resolves indirect jumps); ``semantics`` gives the effects of an instruction, ``conditions`` reads flags, ``call_abi``,
``call_arguments``, ``kernel_effects`` (what acts outside of the process) and ``openmp_runtime`` describe calls. Over the graph ``liveness`` and ``entry_values`` analyse registers, and ``loop_regions``
picks the loop nests that can be regions by themselves.
"""
