"""Sets of offsets and folded streams: what terms and index maps are made of.

``index_set`` holds offsets as unions of arithmetic progressions, ``set_operations`` adds to it; ``nests`` are folded
address streams, ``spans`` and ``footprints`` say where they lie and what they touch without expanding them.
``index_expressions`` are the integer expressions of index maps.
"""
