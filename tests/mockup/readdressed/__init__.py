"""Machine code whose addresses are re-indexed."""
