"""Damaged input, made of real files by a generator of random numbers, and what reads it.

``samples`` makes the real files, ``trees``, ``raw_bytes``, ``elf_fields`` and ``chunked`` damage them, ``readers`` are what
reads them, ``campaign`` feeds many inputs to a reader in a process with little memory and a limit of time. Where an input is
damaged is drawn from a ``random.Random``: a seed in ``make fuzz`` (so that a fault can be made again), hypothesis in tests.
"""
