"""Machine code: decoding, control flow, and what each instruction does.

In come a region's bytes, out come instructions, a control-flow graph and effects. ``disassembly`` decodes, ``image``
reads the file around the region, ``cfg`` builds the graph with ``jump_tables``, ``semantics/`` gives each instruction
its effects, ``conditions`` resolves flags. ``liveness`` and ``entry_values`` say what a loop leaves and finds in
registers, ``loop_regions`` where a loop can stand for its function, ``call_abi`` and ``openmp_runtime`` what calls take
and return.
"""
