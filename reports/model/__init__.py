"""The report as data.

``contract`` holds ``hotspot``, ``candidate`` and ``structure``, and reads and writes JSON.
"""
