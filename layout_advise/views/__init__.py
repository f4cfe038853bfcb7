"""Temporary layouts around annotated loops, written into C++ source (``layout-advise views``).

Annotations and their meaning are those of Radtke and Weinzierl (2024, 2025). ``annotations`` finds the loops, ``walk`` and
``calls`` go through a loop and what it calls, ``accesses`` tells which members are converted in and back, ``texts`` writes
declarations with the classes in ``view.hpp.j2``, ``offload`` makes target regions of loops, ``rewrite`` makes the new
source, and ``check`` reads that again. ``proposal`` writes the annotations that a run proposes, ``names`` holds what the new
source calls things.
"""
