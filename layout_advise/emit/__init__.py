"""A layout of a run as source that is ready to paste (``layout-advise emit``).

In comes a run directory and the name of a candidate, out goes text. ``pick`` finds the candidate's index maps in the run's
files, ``languages`` writes them with ``layoutalgebra/bridges`` and its room ``languages``.
"""
