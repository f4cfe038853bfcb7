"""Lifted code interpreted and run natively, and the states, instructions and kernels that it is compared on."""
