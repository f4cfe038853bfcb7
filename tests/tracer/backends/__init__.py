"""Tests of ``tracer/backends/``."""
