"""Hotspots, loops, calls, kinds of calls and batches, chosen from samples and times."""
