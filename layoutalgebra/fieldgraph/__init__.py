"""Which fields are used near each other: the field graph of Kofler, Cosenza and Fahringer (2015), and its clusters.

In: the order in which a region accesses fields, as a loop nest. Out: the memory distance of each pair of fields
(``memory_distance``), and the partitions of the fields that it suggests (``clusters``).
"""
