"""Tests of ``mockup/timing/``."""
