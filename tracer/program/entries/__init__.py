"""Entries of debugging information (DIEs), as pyelftools parses them one by one.

In comes an entry, out come its attributes and the entries that these refer to (``attributes``), those within it and the
one around it (``tree``). ``line_headers`` says whether a line program has room for what it tells of. Damaged files are
read, too: a tree that leads back to where it came from is refused.
"""
