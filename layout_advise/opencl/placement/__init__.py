"""One plan for the kernels of a program over all devices: which one runs where, and in which layout.

Kernels on buffers are regions, a device with a layout is a place, buffers are structures (``layout_advise/plan/placed.py``).
``order`` makes regions and structures of what a host program does, ``measured`` times kernels, copies and conversions at
each place, ``planned`` chooses and says what is gained, as the report has it.
"""
