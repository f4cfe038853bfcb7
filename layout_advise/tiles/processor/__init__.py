"""Tiles on this machine's processor, learnt once by ``layout-advise calibrate``.

``shapes`` are the clusters that are timed and what a tree asks of one, ``kernels`` their walks in every tile as C,
``timing`` builds and times these, ``calibrate`` trains a tree on them, ``stored`` keeps it with its processor and day.
"""
