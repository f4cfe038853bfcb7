"""What else touches watched memory: the watch itself, and the threads beside it."""
