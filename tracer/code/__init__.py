"""Machine code as the tracer needs it: instructions, and which memory each accesses.

In come the bytes of a ``region``, out come ``instructions`` with their ``operands``: address, size, load or store.
``decoder`` is capstone's engine for all; ``flow`` says where an instruction goes on, ``flow_graph`` finds dominators and
natural loops. ``evex`` says which elements a masked AVX-512 instruction accesses, ``code_loops`` which instruction runs in
which loop, ``frame_alignment`` how the code rounds its stack,
``calls_out`` whether a region calls other code.
"""
