"""The sampling run, by the name the pipeline looks for it."""

from __future__ import annotations

from layout_advise.tracer.snapshot.probe import SampleRun, sample

__all__ = ["SampleRun", "sample"]
