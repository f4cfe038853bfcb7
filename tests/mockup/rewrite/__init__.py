"""Passes over the lifted form: what they change, and that they compute the same."""
