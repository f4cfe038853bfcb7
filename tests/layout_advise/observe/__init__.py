"""Structures found in traces of real programs, and who else uses them."""
