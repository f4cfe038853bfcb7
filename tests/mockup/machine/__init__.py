"""Tests of ``mockup/machine/``."""
