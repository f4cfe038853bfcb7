"""Tests of ``tracer/offspring``."""
