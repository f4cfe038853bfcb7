"""The intermediate forms between machine code and C, and the analyses that every stage uses.

1. ``effects``: the effects of one instruction on registers and memory; ``expressions`` builds its expressions.
2. ``node``, ``value_graph``: the values of a whole region, hash-consed. ``rules`` is one table of simplifications for both
   forms of expressions; ``evaluate`` gives the value of every operation on concrete bits.
3. ``lifted``: structured, typed statements, the lifter's output; ``linear_forms``, ``loop_body``, ``substitution``,
   ``dead_code``, ``data_branches`` and ``last_writers`` analyse and change them; ``verify`` checks that a form is valid.
"""
