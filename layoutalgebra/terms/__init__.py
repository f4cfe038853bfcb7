"""Terms of the layout algebra as frozen values.

In: index sets. Out: terms, their normal form and their text. ``notation`` says how terms are written, ``term`` holds
the classes and the constructors, ``text`` parses, ``simplify`` merges ⊕, ``normal_form`` gives equal sets equal
terms, ``grid_boxes`` and ``pattern_term`` make terms of touched addresses, and ``laws`` states the algebra's laws.
"""
