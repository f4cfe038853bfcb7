"""Re-indexing: where each access goes in a new layout.

In come a lifted form, its binding and a candidate, out comes a plan of digits for each access (``sites``), or a refusal
with the reason. ``plan`` computes the digits, with ``indices/`` (an address cut into indices), ``element_fields`` (which
fields an access covers), ``field_runs`` (loops over fields that can stay) and ``picked_fields`` (those that a value picks);
``rows_told`` says whether the code tells rows at all. ``entered_indices`` are those that calls bring along, ``links`` those
that stand in records for pointers, ``kept_pointers`` those made of pointers that stay where they are in a call,
``moved_arrays`` those of which only the begin moves. ``tested_ranges`` tells accesses
that reach a structure and other memory too, ``reread_fields`` those that a source may read again. ``conversion_view`` says
which fields are copied in and out.
"""
