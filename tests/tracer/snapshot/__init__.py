"""Tests of ``tracer/snapshot/``."""
