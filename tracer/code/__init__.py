"""The hotspot's machine code as data: ``region`` is its bytes, ``decoder`` capstone's instructions and registers.

``evex``, ``operands`` and ``flow`` read single instructions, ``instructions`` decodes a region and its callees,
``code_loops`` finds its loops, ``frame_alignment`` the roundings of its stack frames.
"""
