"""Parked programs, forks and restores, and comparison of their memory."""
