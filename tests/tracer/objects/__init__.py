"""Which pieces of memory a trace touches, and their names."""
