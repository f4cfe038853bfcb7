"""Tests of what cannot be studied: it is told in one line."""
