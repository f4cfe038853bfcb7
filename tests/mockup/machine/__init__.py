"""Decoding, control flow and instruction semantics, checked on the processor."""
