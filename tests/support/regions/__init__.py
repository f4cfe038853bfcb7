"""Programs of regions with outcomes as they are given, for tests of ``layout_advise/regions/``."""
