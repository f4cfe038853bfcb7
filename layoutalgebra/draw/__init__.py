"""Drawings of memory as inline SVG.

In: terms and structures. Out: one ``<svg>`` element each. ``svg`` holds the common pieces, ``memory`` draws a
structure before and after, ``picture`` a term with its nesting, and ``term_stages`` a term on its way through rules.
"""
