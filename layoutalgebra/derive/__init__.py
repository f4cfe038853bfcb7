"""From streams to structures: element size, fields, dimensions, and the accessed layout.

In come folded streams of one piece of memory and what the source declares of it (``declared``), out comes a
``structure`` with its term. ``derive`` does it: fields from ``atoms``, records that nothing declares from
``undeclared_records`` and ``companion_arrays``, irregular choices from ``chosen_elements``. ``stream_terms`` gives the
term of streams alone.
"""
