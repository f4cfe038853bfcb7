"""Launches of an unmodified host program.

``recorder`` (C) is preloaded and writes down sources, arguments and buffers, ``run`` builds it and runs the program with it,
``recorded`` reads what it wrote, ``events`` in which order the buffers were used, ``chosen`` says which kernels are studied.
"""
