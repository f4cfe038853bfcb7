"""Tests of ``tracer/sampling/``."""
