"""Which layouts are proposed of what was observed."""
