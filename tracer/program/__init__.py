"""The program's files: what is where, and what it is called.

In comes an ELF file, out come functions, variables, types and lines. ``elf_checks`` refuses what cannot be analysed,
``binary`` is the file, ``symbols``, ``unwind``, ``lines`` and ``dwarf`` read its tables (``entries`` what one entry of these
says), ``dwarf_types`` and ``variables`` what these say of data. ``function_code`` gives a function's region,
``function_names`` its name for people (``source_names`` in whole sentences), ``openmp_regions`` where a parallel region
starts, ``producer`` and ``extensions`` what it was compiled with, ``modules`` which files a process has mapped.
"""
