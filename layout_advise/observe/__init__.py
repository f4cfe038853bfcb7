"""Second stage: what one call touches.

In comes a program parked at the chosen call, out comes its trace with the structures found in it and their layout terms.
``case`` holds what was chosen and stops the program there; ``stage`` observes the call. ``backends`` chooses a tracing
backend, ``observe`` traces, attributes the accesses to memory objects and derives layouts. Special structures: ``gather``
(objects behind an array of pointers), ``chosen_elements`` (picked by an index array), ``linear_index`` (reached through one
loaded index), ``exchanged_buffers`` (swapped between calls), ``shared_lines`` (false sharing).
``find_kinds`` looks for kinds of calls, ``other_kinds`` observes the calls of
further kinds, ``watch_users`` and ``other_users`` find who else uses the structures between calls. ``annotate`` adds source
places to the trace's file; ``policy`` has the limits.
"""
