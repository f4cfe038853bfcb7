"""Third stage: the lifted code, and which layouts of its structures are worth measuring.

In comes an observation, out come candidate layouts, best under the cost model first, and what mock-ups are made of.
``stage`` lifts and proposes: ``source`` holds the code in all forms with its trace and ``compiler``, ``proposals`` asks the
layout algebra for candidates and leaves out those that the lifted code cannot be re-indexed for, ``recipes`` lists which
mock-ups are made (the identity in its forms, each candidate in its variants, one with a wrong index map).
``policy`` has the limits, ``field_clusters`` suggests partitions of fields by the order in which the call accesses them,
``cluster_tiles`` a block length for each cluster where this machine's processor was calibrated.
``candidates_file`` keeps the candidates in the run directory; ``titles`` words what one advises.
``shared_candidates`` are measured in several regions.
``line_starts`` has plain arrays begin with a cache line.
``shared_index`` tells which arrays have one index and may be merged, ``untaken_fields`` are those used on branches that the
traced call does not take.
"""
