"""Runs as objects in notebooks, and the cell magic."""
