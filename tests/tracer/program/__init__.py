"""ELF and DWARF, compared with the system's own tools."""
