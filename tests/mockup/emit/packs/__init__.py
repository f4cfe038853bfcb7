"""C of mock-ups: text, packs, vector statements and static arrays, compiled and run."""
