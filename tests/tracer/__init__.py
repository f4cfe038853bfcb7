"""Tests of the way from a program to a folded trace."""
