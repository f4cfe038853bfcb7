"""Folding of streams, and translation of addresses between runs."""
