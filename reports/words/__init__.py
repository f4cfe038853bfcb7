"""Sentences and numbers of the reports.

The data of ``model`` as words, which all ``pages`` share.
"""
