"""Tests of one plan over devices."""
