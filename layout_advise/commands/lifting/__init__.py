"""``doctor --lift``: what of a binary can be lifted.

``lift_survey`` looks at each function, in processes of their own, which may die or take too long.
``doctor_lift`` prints its rows as they come.
"""
