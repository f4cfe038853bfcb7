"""Tests of ``layout_advise/verify/``."""
