"""Tests of ``mockup/remap/``."""
