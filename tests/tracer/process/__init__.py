"""Tests of ``tracer/process`` and of the agent."""
