"""Structures from streams: their elements, and the fields of these."""
