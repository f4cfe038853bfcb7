"""Tests of ``tracer/program/``."""
