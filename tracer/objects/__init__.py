"""The pieces of memory that a trace touches, and what they are called.

In come a trace and a stopped program, out comes which reference touches which ``memory_object``. ``program_memory``
lists heap blocks, variables and mappings, ``members`` takes large arrays out of a record, ``pointers`` and
``object_names`` name blocks by the variables that lead to them, in a parallel region by ``outlined_arguments``, too,
``attribution`` puts it together. ``heap_blocks`` looks
blocks up in a trace, ``lifetimes`` says which come and go in the call, ``sharing`` which cache lines threads share.
"""
