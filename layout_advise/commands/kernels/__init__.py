"""The commands about OpenCL kernels, one file each.

``opencl`` advises on the structures in their buffers.
``calibrate`` learns which tiles suit a device.
"""
