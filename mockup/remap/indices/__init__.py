"""An address as indices into the dimensions of a structure.

``cut_address`` cuts it into terms that are digits and a rest, with ``index_terms`` (a coefficient as digits),
``operand_levels`` (in which loop an operand changes), for which ``saved_registers`` looks through spills, ``row_steps``
(steps that only registers know) and ``rows_seen`` (how an access was seen to go over rows).
"""
