"""Tests of ``tracer/code/``."""
