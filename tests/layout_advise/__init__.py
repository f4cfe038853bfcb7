"""Tests of ``layout_advise/``."""
