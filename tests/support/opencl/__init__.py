"""Kernels for the tests of OpenCL, and the device that they run on."""
