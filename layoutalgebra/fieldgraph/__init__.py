"""Which fields are used near each other: the field graph of Kofler, Cosenza and Fahringer (2015), and affinity.

In: the order in which a region accesses fields, as a loop nest, which ``execution`` makes of folded streams and the folded
order of execution. Out: the memory distance of each pair of fields (``memory_distance``), and the partitions of the fields
that it suggests (``clusters``); those that use in the same iterations suggests (``affinity``).
"""
