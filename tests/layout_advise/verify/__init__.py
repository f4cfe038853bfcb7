"""Comparison of mock-ups with the original: what must pass, and what must be noticed."""
