"""Re-indexing: where each access goes in a new layout.

In come a lifted form, its binding and a candidate, out comes a plan of digits for each access, or a refusal with the
reason. ``saved_registers`` looks through spills, ``plan`` computes the digits, with ``index_terms`` (a coefficient as
digits), ``element_fields`` (which fields an access covers), ``row_steps`` (steps that only registers know),
``rows_told`` (whether the code tells rows at all), ``operand_levels`` (in which loop an operand changes),
``field_runs`` (loops over fields that can stay) and ``picked_fields`` (those that a value picks). ``entered_indices``
are those that calls bring along, ``links`` those that stand in records for pointers, ``moved_arrays`` those of which
only the begin moves. ``tested_ranges`` tells accesses that reach a structure and other memory too.
``conversion_view`` says which fields are copied in and out.
"""
