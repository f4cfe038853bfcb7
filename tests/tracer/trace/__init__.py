"""The trace's file: round trips, cut and damaged files."""
