"""Tests of ``layout_advise/decide/``."""
