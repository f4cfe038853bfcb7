"""The rewriting rules 1 to 9, each with the index map that it induces.

In comes a term, out comes another one and a bijection between their accessed offsets. ``rewriting`` says what a rule
is, ``rules`` holds them, ``index_map`` the maps, which compose and invert, ``map_printing`` prints them as sympy
expressions and C.
"""
