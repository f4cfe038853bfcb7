"""Tests of ``tracer/trace/``."""
