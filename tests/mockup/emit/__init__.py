"""Tests of ``mockup/emit/``."""
