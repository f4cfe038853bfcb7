"""Tests of ``mockup/``."""
