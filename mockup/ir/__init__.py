"""The two intermediate forms, and what is computed on them.

``effects`` say what one instruction does, with ``expressions`` that simplify as they are built; ``value_graph`` holds
hash-consed values, simplified by ``simplify``; ``lifted`` is the structured form that passes rewrite and ``emit/``
writes. ``evaluate`` gives every operation its value. Analyses: ``natural_loops``, ``loop_body``, ``linear_forms``,
``data_branches``; ``verify`` checks that a lifted form is valid; helpers of passes: ``substitution``, ``dead_code``.
"""
