"""A program stopped at a call of its hotspot, and whole copies of it.

``park`` starts one and returns an ``AgentProcess``; ``snapshots`` restores fresh copies of it, by ``criu`` (installed by
``criu_install``) or by fork; ``compare`` compares the memory of two processes after a call.
"""
