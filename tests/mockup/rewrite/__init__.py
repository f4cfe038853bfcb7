"""Tests of ``mockup/rewrite/``."""
