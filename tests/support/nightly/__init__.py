"""``make nightly``: random forms of instructions and random functions, lifted and held against the processor.

``random_forms`` varies the registers, addresses and constants of the forms that the tests know, ``random_kernels`` writes
functions in C; ``rounds`` runs both against the original and counts.
"""
