"""Pages of other processes.

``touched`` finds those that there are, ``process_memory`` those that can differ between processes, and reads them;
``huge_pages`` finds the huge ones and makes them again in a restored copy.
"""
