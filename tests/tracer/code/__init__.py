"""Decoding of instructions and their memory operands."""
