"""The first tile of each cluster, by a tree that is trained on a device (Kofler et al. 2015, the second step).

``samples`` times calibration kernels in every tile, ``train`` makes a tree of what was fastest (with scikit-learn, which
only calibrating needs), ``tree`` is that tree as data and follows it, ``choose`` asks it for a record's clusters,
``stored`` keeps it with its device, figures and age.
"""
