"""Tests of the project itself: the house, the documentation, the examples and the benchmarks' summary."""
