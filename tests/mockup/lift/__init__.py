"""Tests of ``mockup/lift/``."""
