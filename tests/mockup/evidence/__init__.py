"""Binding, independence and pointer tables, from traces."""
