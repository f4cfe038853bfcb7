"""Independent iterations of a loop that run side by side.

``iterations`` says what differs between neighbouring iterations, ``chosen_loops`` which loops are written so.
``vector_slots`` writes them in vector types, on ``vector_operands`` and ``vector_accesses``, with the text of
``vector_text``; ``block_loops`` writes them in plain C, as loops over the elements of a block.
"""
