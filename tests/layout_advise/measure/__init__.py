"""Effort, replays and measurements by number of threads."""
