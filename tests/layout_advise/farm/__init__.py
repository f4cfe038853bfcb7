"""Tests of the farm: lists, steps, runs on one machine and on two workers, summaries."""
