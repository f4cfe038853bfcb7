"""Passes over the lifted form that bring it nearer to the source; each computes the same on the traced call.

In comes what the lifter made, out comes a form whose loops take one element an iteration. ``frame_variables`` is for all
forms, and comes first; ``handed_frame`` tells it what else may reach a frame. ``passes`` holds the ordered tuple of the
others, one signature over ``(Lifted, Evidence)``, and runs it. They run in this order: ``hoist_pointer_loads``,
``reload_carried_values``, ``whole_fields``, ``unroll_field_loops``, ``stop_behind_loops``, ``reroll``, ``statement_order``.
``reroll`` uses ``unrolled_copies``, ``single_element``, ``reroll_branchy_loops``, and ``reroll_around_loops`` with its
``loop_nest``. Where its conditions do not hold, a pass returns the form unchanged.
"""
