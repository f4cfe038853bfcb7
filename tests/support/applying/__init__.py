"""C programs that are rewritten for another layout."""
