"""Tests of ``layout_advise/measure/``."""
