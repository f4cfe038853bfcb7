"""Tests of ``layout_advise/commands/``."""
