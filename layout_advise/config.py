"""The user's settings, checked: flags, then ``LAYOUT_ADVISE_*`` variables, then defaults."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

STAGES = ("sample", "trace", "explore", "measure", "report")
Stage = Literal["sample", "trace", "explore", "measure", "report"]

STDIN = Path("/dev/stdin")

DEFAULT_TIMEOUT = 600.0
DEFAULT_CANDIDATES = 8
DEFAULT_MAX_REFS = 64_000_000
DEFAULT_REGIONS = 6


@dataclass(frozen=True, slots=True)
class Settings:
    """One run of the road. ``timeout`` in seconds for each run of the program; ``budget`` in seconds for measuring (None:
    the stage's own); ``environment``: variables that are set for the program; ``max_refs`` accesses of a call are recorded
    at most; ``max_bytes`` is the most room that the records, and the file of the trace, may each take. ``live``: whether
    layouts are tried in the running program, by itself where the snapshot is unlike it, and plans that change something.
    ``no_source``: the report has no
    code, arguments and paths of the program. ``baseline``: an earlier run to be held against. ``machine_profiles``: runs of
    the program on other machines, to which data goes by ``transfer`` (bytes a second, ns) where they do not say how."""

    command: tuple[str, ...]
    output: Path
    force: bool = False
    hotspot: str | None = None
    further_hotspots: tuple[str, ...] = ()
    regions: int = DEFAULT_REGIONS
    call: int | None = None
    backend: str = "auto"
    snapshot: Literal["auto", "criu", "fork"] = "auto"
    until: Stage = "report"
    timeout: float = DEFAULT_TIMEOUT
    restores: int | None = None
    budget: float | None = None
    candidates: int = DEFAULT_CANDIDATES
    max_refs: int = DEFAULT_MAX_REFS
    max_bytes: int | None = None
    temporary: bool = False
    allow_reassociation: bool = False
    live: Literal["auto", "always", "never"] = "auto"
    stdin: Path | None = None
    capture_output: bool = False
    no_source: bool = False
    baseline: Path | None = None
    machine_profiles: tuple[Path, ...] = ()
    transfer: tuple[float, float] | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def usual_room(self) -> bool:
        """Returns whether no other limit is set for what is recorded than the usual one."""
        return self.max_refs == DEFAULT_MAX_REFS and self.max_bytes is None


def from_environment(name: str, default: str) -> str:
    """``LAYOUT_ADVISE_NAME`` or the default."""
    return os.environ.get(f"LAYOUT_ADVISE_{name}", default)
