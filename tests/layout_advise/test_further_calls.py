"""What further calls show: the ways that they take are found in one go."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise import further_calls
from layout_advise.further_calls import verify_further
from layout_advise.progress import Progress
from layout_advise.verify.stage import Verified


def test_ways_of_all_further_calls_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = {2: frozenset((0x10,)), 3: frozenset[int](), 4: frozenset((0x20, 0x10))}
    case: Any = SimpleNamespace(
        calls_compared=(1, 2, 3, 4),
        space=SimpleNamespace(progress=Progress(quiet=True)),
        park=nullcontext,
        observe=lambda program, call: SimpleNamespace(trace=call),
    )
    monkeypatch.setattr(further_calls, "taken_after_all", lambda lifted, first, now: ways[now])
    # nothing is compared any more at calls 3 and 4, whose mock-ups would have to be compiled
    monkeypatch.setattr(further_calls, "at_another_call", None)
    first = Verified(cast(Any, SimpleNamespace(wanted=())), {})
    done = verify_further(case, cast(Any, SimpleNamespace(trace=1)), cast(Any, None), first)
    assert done.took == {0x10, 0x20}
    assert done.calls == 1
