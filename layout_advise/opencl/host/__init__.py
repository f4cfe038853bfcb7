"""Launches and devices: kernels with what they are given, in the program's layout or another one.

``launch`` is a launch as data, ``spec`` reads one from a file, ``variants`` makes the launches of a layout, ``platforms``
lists the devices, and ``session`` builds and runs on one of them.
"""
