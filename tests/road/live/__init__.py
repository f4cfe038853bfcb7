"""Whole runs with layouts tried in the running program."""
