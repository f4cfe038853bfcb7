"""Trials in the running program, on little programs."""
