"""Verdicts from given ratios, and the doubts against them."""
