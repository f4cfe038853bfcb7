"""Tests of trees for tiles: what a processor is calibrated by, and what becomes of it."""
