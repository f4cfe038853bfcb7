"""Tests of ``tracer/folding/``."""
