"""From a region's machine code and a candidate layout to C, and from that to seconds: built like a compiler.

In order: ``machine/`` decodes, ``lift/`` makes structured statements (``ir/``), ``evidence/`` ties them to the trace,
``rewrite/`` runs its passes over them, ``remap/`` re-indexes them for a layout, ``emit/`` writes C, ``run/`` compiles it,
``timing/`` times it against the original. ``readdressed/`` keeps the machine code, and re-indexes its addresses only.
"""
