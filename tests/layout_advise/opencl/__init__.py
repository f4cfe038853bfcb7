"""Tests of OpenCL kernels: source, field graphs, rewriting, and runs on a device where there is one."""
