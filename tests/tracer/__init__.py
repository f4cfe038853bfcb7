"""Tests of ``tracer/``."""
