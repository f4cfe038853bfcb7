"""From a parsed kernel program and layouts of its records to new source.

``layouts`` are clusters of members with tiles, ``accessors`` the functions for one, ``expressions`` the edits of all uses
(with the rewriting of ``apply``), ``rewrite`` makes the source, and ``marshal`` moves data between the layouts.
"""
