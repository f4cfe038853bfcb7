"""Many programs, inputs and flags in one go: from a list to rows, and from rows to a summary.

``listing`` reads the list and says which runs it asks for. ``schedule`` hands these to dask.distributed; on a machine
``run_job`` carries out one at a time: ``prepare`` fetches, builds and makes the input, then ``trace`` runs in a process
of its own. ``guarded`` starts processes with a time limit and leaves none behind. ``rows`` makes a row of a report and keeps
it, ``summary`` counts. ``policy`` has the limits. The summary's classes and pages are in ``reports/``.
"""
