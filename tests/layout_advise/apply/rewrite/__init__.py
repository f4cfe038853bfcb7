"""The rewriting of source, checked by compiling and running it."""
