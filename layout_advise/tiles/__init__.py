"""Trees that say how long the blocks of a cluster of fields are to be, learnt from kernels that a machine timed.

``tree`` is a decision tree as data and follows it, ``train`` makes one of timed kernels (with scikit-learn, which only
calibrating needs), ``kept`` keeps calibrations in the user's cache and tells their age. ``processor/`` has the kernels for
processors; those for OpenCL devices are in ``layout_advise/opencl/tiles/``.
"""
