"""Tests of ``layoutalgebra/``."""
