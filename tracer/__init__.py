"""From a program to a snapshot and a folded trace; knows nothing of layouts or mock-ups."""
