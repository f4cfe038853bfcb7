"""Tests of field graphs and what is accessed alike."""
