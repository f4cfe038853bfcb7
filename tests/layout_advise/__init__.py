"""Tests of the application, one folder a stage."""
