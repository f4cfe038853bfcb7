"""Rewriting rules on terms, and the index maps that they induce.

In: a term. Out: the new term, and a map of accessed offsets that composes, inverts and prints. ``index_map`` (maps as
pieces), ``rewriting`` (what all rules share), ``rules`` (rules 1-9), ``map_printing`` (sympy and C).
"""
