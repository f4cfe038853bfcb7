"""Tests of sets of addresses and of folded streams."""
