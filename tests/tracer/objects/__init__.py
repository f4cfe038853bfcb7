"""Tests of ``tracer/objects/``."""
