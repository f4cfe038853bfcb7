"""The first tile of each cluster, by a tree that is trained on a device (Kofler et al. 2015, the second step).

``samples`` times calibration kernels in every tile, ``layout_advise/tiles/`` makes a tree of what was fastest, ``choose``
asks it for a record's clusters, ``stored`` keeps it with its device, figures and age.
"""
