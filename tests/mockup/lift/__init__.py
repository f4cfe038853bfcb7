"""Lifted functions, run against the machine code that they were made of."""
