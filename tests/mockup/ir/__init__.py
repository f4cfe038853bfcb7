"""Tests of ``mockup/ir/``."""
