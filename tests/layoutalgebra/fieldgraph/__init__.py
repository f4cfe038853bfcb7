"""Tests of the field graph."""
