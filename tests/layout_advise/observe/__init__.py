"""Tests of ``layout_advise/observe/``."""
