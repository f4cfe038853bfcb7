"""The C text of a mock-up, by the settings' names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.mockup.emit import EmitSettings, emit
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.tracer.trace.trace import Trace


def emit_mockup(
    lifted: Lifted, candidate: Candidate | None, trace: Trace, structures: Sequence[Structure], **options: Any
) -> str:
    """The text alone of what :func:`layout_advise.mockup.emit.emit` gives with the settings ``options``."""
    return emit(lifted, candidate, trace, structures, EmitSettings(**options)).text
