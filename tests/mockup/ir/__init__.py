"""Expressions, values and analyses of the intermediate forms."""
