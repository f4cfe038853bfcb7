"""A region's own machine code on another layout: only addresses are re-indexed, every other instruction stays.

In come the region, its trace and a candidate, out comes the C of a shared object that carries a copy of the code. ``moves``
says where each reference goes, ``arithmetic`` how a new address is made of an old one, ``registers`` which are free for
that, ``stretches`` for how many accesses one serves, ``operand`` (or, in several places, ``pieces``) writes the instruction
at such a register, ``image`` the whole copy, ``source`` the shared object. Its unchanged layout is the original's code and
nothing a compiler made (``docs/decisions/0115``).
"""
