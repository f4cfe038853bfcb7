"""Temporary layouts around annotated loops."""
