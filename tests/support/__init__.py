"""Helpers that several tests share; no tests."""
