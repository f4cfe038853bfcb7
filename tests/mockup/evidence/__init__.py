"""Tests of ``mockup/evidence/``."""
