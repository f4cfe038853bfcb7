"""Variants run, compared and timed on a device, in fresh processes.

``record`` notes the accesses of some work items. ``jobs`` is the work and its outcome as data, ``worker`` the process that
does it, ``clock`` says which of its times counts, ``conversion`` times the marshalling, ``moves`` that of each buffer with
its transfers, ``processes`` starts workers, and ``verify`` compares what variants left with what the original left.
"""
