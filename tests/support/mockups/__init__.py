"""Kernels, memories and machines that tests of mock-ups share."""
