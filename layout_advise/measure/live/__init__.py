"""Candidates tried in the running program, which is started some more times for each.

In comes a region with its mock-ups (``bench``: what all its trials share, what is against one, and the orders for a
candidate), out comes what became of one (``outcome``). ``trial`` makes the runs: ordinary ones, one with all calls as the
mock-up, and pairs in which each call is both; ``ratio`` makes one number of the pairs.
"""
