"""A program's files: ELF, DWARF, lines, unwinding, and what the source calls things.

``binary`` is one file with everything in it; ``modules`` all files of a process.
"""
