"""Tests of ``layout_advise/choose/``."""
