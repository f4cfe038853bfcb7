"""The C that the new source needs beside its own: types that stand for pointers, and a function for each way they are used.

``accessors`` puts it together, and has what is done with elements; ``places`` are the addresses of members, ``pool`` is for
elements that are allocated one by one.
"""
