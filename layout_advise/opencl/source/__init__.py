"""The front end: OpenCL C in, kernels with their parameters and records out.

``preprocess`` takes macros away, ``prelude`` declares what the parser must know, ``read`` parses with libclang (through
the reader of ``apply``), and ``kernels`` is what comes out.
"""
