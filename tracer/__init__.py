"""From a program to a snapshot and a folded trace; knows nothing of layouts or mock-ups.

In order: ``sampling/`` finds where the time goes, ``program/`` reads the file, ``snapshot/`` starts it and parks it at
a call through ``process/``, ``backends/`` record that call with the help of ``code/``, ``folding/`` folds the records
(in C: ``nlr/``) into a ``trace/``, ``objects/`` names the memory that it touched, and ``watch/`` sees who else uses it
between calls.
"""
