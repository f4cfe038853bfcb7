"""Simplification rules, written once for both forms of expressions.

``form`` says how a rule sees and makes values; ``integer``, ``bitwise``, ``widths``, ``choices`` and ``ranges`` are the
rules, by operation; ``table`` lists and applies them. A new rule is a case in one of the five.
"""
