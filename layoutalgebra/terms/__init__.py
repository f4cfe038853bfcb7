"""Layout terms as frozen values: functions from places to 0 and 1.

``term`` defines them, ``text`` prints and parses them, ``simplify`` merges the terms of a ⊕, ``laws`` states the laws
as functions. From sets to terms: ``grid_boxes`` (boxes of addresses on a grid), ``pattern_term`` (any set, equal rows
grouped), ``normal_form`` (one form for one set).
"""
