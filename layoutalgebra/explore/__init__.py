"""Candidate layouts of structures, ranked by a cost model.

In come structures and how they are walked, out come candidates with index map and derivation. ``explore`` lists the
families, ``relayout`` makes the index map of a plan, ``joint_candidates`` combines structures that have to be alike,
``traffic`` counts cache lines, ``rule_chain`` reaches a candidate's map again by the rewriting rules. ``wide_search``
goes through thousands of layouts instead, over ``partitions`` of the fields and ``arrangements`` of the dimensions,
guided by ``patterns``.
"""
