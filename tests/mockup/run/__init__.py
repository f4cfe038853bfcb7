"""Builds of mock-ups, placement of their code, and the survey of binaries."""
