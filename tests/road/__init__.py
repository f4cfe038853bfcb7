"""Whole runs of ``trace`` on small programs."""
