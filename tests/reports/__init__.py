"""Tests of ``reports/``."""
