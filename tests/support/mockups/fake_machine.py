"""A machine whose variants take known times."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from layout_advise.errors import SnapshotError
from layout_advise.tracer.process.stopped_program import AT_ONCE, Calm, Sample

COLD: dict[str, float] = {}
"""How many times as long a variant takes with flushed caches; 2 where it is not in here."""

FRESH: dict[str, float] = {}
"""With branches that are not known; 1 where it is not in here."""

APART: dict[str, float] = {}
"""With the calls of a batch one by one; 1 where it is not in here."""

TRUE_NS = {
    "original": 1000.0,
    "identity": 1010.0,
    "identity-unrolled": 420.0,
    "identity-restrict": 2900.0,
    "fast": 400.0,
    "slow": 3000.0,
    "hopeless": 15000.0,
}

CONVERSION_NS = (700.0, 300.0)

AROUND_NS = 200.0
"""Less than both together: what was copied in is at hand."""


class FakeProgram:
    """Every process has its own speed; some calls fault; ``crash`` dies when it is prepared."""

    def __init__(self, machine: FakeMachine) -> None:
        self.machine = machine
        self.names = ["original"]
        self.speed = next(machine.speeds)

    def __enter__(self) -> FakeProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self.machine.closed += 1

    def load(self, path: Path) -> int:
        self.names.append(path.name)
        return len(self.names) - 1

    def prepare(
        self, variant: int, written: Sequence[Any], original: Sequence[Any] = (), *, like_original: bool = False
    ) -> int:
        assert like_original == self.names[variant].startswith("identity")
        if self.names[variant] == "crash":
            raise SnapshotError("died: SIGSEGV")
        return 0

    def put_back(self, variant: int) -> float:
        return 0.0

    def block(
        self,
        variant: int,
        calls: int,
        mode: str = "steady",
        *,
        converted: bool = False,
        calm: Calm = AT_ONCE,
        settle: tuple[int, str] | None = None,
    ) -> tuple[tuple[Sample, ...], Calm]:
        self.machine.calms.append(calm)
        self.machine.settles.append(settle)
        self.machine.order.append(self.names[variant])
        name = self.names[variant]
        longer = {"steady": 1, "cold": COLD.get(name, 2), "fresh": FRESH.get(name, 1), "apart": APART.get(name, 1)}[mode]
        true = TRUE_NS[name] * self.speed * longer
        true += AROUND_NS * self.speed if converted else 0
        noise = [true * self.machine.random.uniform(0.995, 1.005) for _ in range(calls)]
        samples = tuple(
            Sample(t, t, 0, 50 if i == calls - 1 else 0, 1000) if i % 4 else Sample(t * 9, t * 9, 0, 90, 1000)
            for i, t in enumerate(noise)
        )
        return samples, replace(calm, patience_ns=calm.patience_ns // 2)

    def convert(self, variant: int, times: int = 3) -> tuple[tuple[float, float], ...]:
        self.machine.converted.append(self.names[variant])
        return ((CONVERSION_NS[0] * self.speed, CONVERSION_NS[1] * self.speed),) * times


class FakeMachine:
    def __init__(self) -> None:
        self.random = random.Random(7)
        # by themselves: how often variants are called does not change them
        self.speeds = itertools.cycle((0.97, 1.02, 0.96, 1.04, 1.0))
        self.order: list[str] = []
        self.converted: list[str] = []
        self.calms: list[Calm] = []
        self.settles: list[tuple[int, str] | None] = []
        self.closed = 0

    def restore(self) -> Any:
        return FakeProgram(self)
