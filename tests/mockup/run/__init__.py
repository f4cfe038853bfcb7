"""Tests of ``mockup/run/``."""
