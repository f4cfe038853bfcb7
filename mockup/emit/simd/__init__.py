"""Independent iterations of a loop that run side by side.

``iterations`` says what differs between neighbouring iterations. ``vector_slots`` writes them in vector types, with the
text of ``vector_text``; ``block_loops`` writes them in plain C, as loops over the elements of a block.
"""
