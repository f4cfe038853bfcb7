"""Applying a layout to source."""
