"""The running program seen from outside: where its time goes, and how often and how long its hotspot runs.

``probe`` samples and times with the agent, ``perf`` samples with Linux perf; ``hotspots`` turns samples into functions,
``call_chains`` into callers.
"""
