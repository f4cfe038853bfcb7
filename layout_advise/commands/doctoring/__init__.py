"""What ``doctor`` finds out beyond which programs there are.

``diagnosis`` is one finding; ``room`` looks for little room and few rights: memory, open files, folders that cannot be
written, processes that may not be looked into; ``calibrated`` tells of the processor's calibration.
"""
