"""Samples, call chains and the ranking of functions."""
