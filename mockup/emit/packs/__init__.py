"""Operations of one packed instruction, written as one vector statement.

``find`` groups them into a ``pack``, ``fill`` computes a shared element twice, ``fmaddsub`` keeps alternating sums
together, ``writer`` writes the statements; ``lined_up`` tells which lanes a layout keeps so. ``byte_masks`` are
comparisons of many bytes at once.
"""
