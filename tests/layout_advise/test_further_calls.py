"""What further calls show: the ways that they take are found in one go."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise import further_calls
from layout_advise.errors import TraceError
from layout_advise.further_calls import traces_ahead, verify_further
from layout_advise.mockup.ir.lifted import Lifted, WayEnd
from layout_advise.progress import Progress
from layout_advise.propose import stage
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


def test_further_calls_are_traced_ahead_as_far_as_the_program_reaches_them() -> None:
    def observe(program: int, call: int) -> Any:
        if call == 3:
            raise TraceError("the program ended")
        return SimpleNamespace(trace=call)

    space = SimpleNamespace(progress=Progress(quiet=True))
    case: Any = SimpleNamespace(calls_compared=(1, 2, 3, 4), space=space, park=nullcontext, observe=observe)
    assert list(map(str, traces_ahead(case))) == ["2"]


def test_the_hotspot_is_lifted_with_the_ways_of_all_calls_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """fasttree: 33 mock-ups were compiled and compared, and all of it again for a way that call 6 took. What is behind the
    end of a way has ends of its own."""
    first, later, rest = (SimpleNamespace(untaken=untaken) for untaken in ({1, 2, 3, 4}, {1, 3, 4}, {1, 2, 4}))
    lifts: list[frozenset[int]] = []

    def attempt(region: Any, kind: Any, outs: Any, known: Any, untaken: frozenset[int], *, calls: bool) -> Lifted:
        lifts.append(untaken)
        ends = sorted(untaken)[1:2]  # of the ways that are not taken the second one is met
        return Lifted("work", 0, (), (), tuple(WayEnd(pc, "not taken") for pc in ends))

    case: Any = SimpleNamespace(taken=frozenset(), profiled=SimpleNamespace(threaded=True), outs=(), known=())
    seen: Any = SimpleNamespace(trace=first, region=None)
    monkeypatch.setattr(stage, "attempt", attempt)
    monkeypatch.setattr(stage, "with_strings_as_loops", lambda lifted, seen, again: lifted)
    ahead: Any = lambda: (later, rest)  # noqa: E731
    lifted, untaken = stage.lifted_for_all(case, seen, (), ahead)
    assert lifts == [{1, 2, 3, 4}, {1, 3, 4}, {1, 4}]
    assert isinstance(lifted, Lifted)
    assert untaken == {1, 4}
    seen.trace = SimpleNamespace(untaken={1})
    never: Any = None
    assert stage.lifted_for_all(case, seen, (), never)[1] == {1}  # no way ends: no further call is traced
