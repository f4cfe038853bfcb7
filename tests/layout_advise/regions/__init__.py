"""Which regions of a run are looked at, and which one is told."""
