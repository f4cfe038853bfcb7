"""Tracing by an instrumented copy of the hotspot: see :mod:`layout_advise.tracer.backends.clone.image`."""
