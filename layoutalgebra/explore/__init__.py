"""From structures to candidate layouts: plans, carried out by the rewriting rules, ordered by a cost model.

In: structures, and how the hotspot walks them. Out: candidates, cheapest first. ``plans`` and ``placement`` (plans and their
places in bytes), ``factor_chain`` and ``rewritten_parts`` (the rules that carry out a plan), ``relayout`` (plan to layout),
``traffic`` and ``cost_model``, ``families`` (plans by name), ``wide_search`` with ``arrangements``, ``partitions`` and
``patterns`` (many plans), ``pattern_proposals`` (the few of them that are measured), ``joint_candidates``, ``explore``.
"""
