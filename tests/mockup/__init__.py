"""Tests of the way from machine code to timed C."""
