"""Mock-ups of functions of bash."""

from __future__ import annotations

from pathlib import Path

from layout_advise.errors import LayoutAdviseError
from layout_advise.mockup.run.survey import lift_function, source_of, surveyed
from layout_advise.tracer.program.binary import ElfBinary

BASH = Path("/bin/bash")

LONGEST = 400


def sources() -> list[str]:
    """Mock-ups of thirty short functions of bash (as many as can be lifted)."""
    binary = ElfBinary.open(BASH)
    found = []
    for function in [f for f in surveyed(binary) if f.size < LONGEST][85:115]:
        try:
            found.append(source_of(lift_function(binary, function)[1]))
        except LayoutAdviseError as error:
            found.append(str(error))
    return found
