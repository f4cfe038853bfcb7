"""How often a program is started for the times of its calls."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise.choose import probed_calls
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.probed_calls import IN_SITU_PROCESSES, is_far_too_short, probe_calls
from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings


def starts(monkeypatch: pytest.MonkeyPatch, ns: float) -> int:
    """How often a program is started whose calls take ``ns``."""
    made: list[int] = []

    def probe(*_: Any, timed: int = 100, **__: Any) -> Any:
        made.append(timed)
        one = SimpleNamespace(cpu_ns=ns, wall_ns=ns, canary=50, between_ns=10.0)
        return SimpleNamespace(calls=1000, times=(one,) * timed)

    monkeypatch.setattr(probed_calls, "probe", probe)
    profiled = cast(Profiled, SimpleNamespace(entry=None, threaded=False))
    probe_calls(Settings(("./app",), Path("run")), profiled, None)
    return len(made)


def test_calls_that_are_far_too_short_are_not_timed_in_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    least, most = IN_SITU_PROCESSES
    assert starts(monkeypatch, 300.0) == 1 + least
    assert starts(monkeypatch, 5.0 * CHOOSE.short_call_ns) == 1 + most


def test_calls_near_the_limit_are_looked_at_again() -> None:
    assert is_far_too_short((300.0, 300.0, 1e6))
    assert not is_far_too_short((0.75 * CHOOSE.short_call_ns,))
    assert not is_far_too_short(())
