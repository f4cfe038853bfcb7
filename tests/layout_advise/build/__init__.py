"""Tests of ``layout_advise/build/``."""
