"""Whole runs of the tool on real programs."""
