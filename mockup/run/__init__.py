"""Mock-ups as shared objects, from their C on.

``build`` compiles them with the producer's flags (``compilers`` says what differs between gcc and clang), once for code at
several places (``moved_code``);
``code_placement`` builds the identity with its hot loop where the original has it; ``same_code`` tells which are the same
program, ``packed_loops`` which have the same vector arithmetic; ``load`` (with ``array_checks`` and ``fixed_addresses``)
calls one on NumPy arrays in this process; ``survey`` lifts, emits and builds all functions of a binary.
"""
