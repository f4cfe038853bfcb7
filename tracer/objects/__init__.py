"""The memory objects that a trace touches, with the names and types that the source gives them.

``attribution`` assigns references to the objects of ``program_memory``; ``sharing`` finds lines that threads fight for,
``lifetimes`` the blocks that come and go in a call.
"""
