"""Sampling: where a program's time goes, and how often its hotspot runs.

``probe`` samples by the agent's timer and counts and times calls, ``perf`` samples where the timer sees too little,
``call_chains`` finds who called, ``hotspots`` ranks functions and chooses one, ``entry_order`` logs in which order several
places are entered. Timed parts of runs on one machine take ``turns``.
"""
