"""What further calls show: the ways that they take are found in one go."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise import further_calls
from layout_advise.build.stage import Built
from layout_advise.errors import TraceError
from layout_advise.further_calls import fastest_first, step_seconds, time_kinds, traces_ahead, verify_further, verify_kind
from layout_advise.measure.stage import KindTimed
from layout_advise.mockup.ir.lifted import Lifted, WayEnd
from layout_advise.mockup.lift.inline_calls import Untaken
from layout_advise.mockup.timing.variants import IDENTITY, Variant
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_kinds import Other, Others
from layout_advise.progress import Progress
from layout_advise.propose import stage
from layout_advise.propose.recipes import Recipe
from layout_advise.verify.stage import Verified
from layout_advise.verify.verify import Finding


def test_ways_of_all_further_calls_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = {2: frozenset((0x10,)), 3: frozenset[int](), 4: frozenset((0x20, 0x10))}
    case: Any = SimpleNamespace(
        calls_compared=(1, 2, 3, 4),
        until=math.inf,
        seconds=60.0,
        settings=SimpleNamespace(budget=None),
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
    assert list(map(str, traces_ahead([case]))) == ["2"]
    other: Any = SimpleNamespace(calls_compared=(7, 8, 9), space=space, park=nullcontext, observe=observe)
    assert list(map(str, traces_ahead([case, other]))) == ["2", "8", "9"]  # calls of another kind take ways, too


def test_the_hotspot_is_lifted_with_the_ways_of_all_calls_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """fasttree: 33 mock-ups were compiled and compared, and all of it again for a way that call 6 took. What is behind the
    end of a way has ends of its own."""
    ran = ({1, 2, 3, 4}, {1, 3, 4}, {1, 2, 4})
    first, later, rest = (SimpleNamespace(untaken=untaken, called=()) for untaken in ran)
    lifts: list[frozenset[int]] = []

    def attempt(region: Any, kind: Any, outs: Any, known: Any, ways: Untaken, *, calls: bool) -> Lifted:
        lifts.append(ways.starts)
        ends = sorted(ways.starts)[1:2]  # of the ways that are not taken the second one is met
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
    seen.trace = SimpleNamespace(untaken={1}, called=())
    never: Any = None
    assert stage.lifted_for_all(case, seen, (), never)[1] == {1}  # no way ends: no further call is traced


def raced(builds: int, *, until: float = math.inf) -> tuple[Any, Any]:
    """A case with two further calls and a kind of calls with three, and so many builds that did the same at the first."""
    found = {Variant(f"c{k}"): Finding(None) for k in range(builds)} | {IDENTITY: Finding(None)}
    recipes = [Recipe(v, cast(Any, SimpleNamespace(id=v.layout)) if v != IDENTITY else None) for v in found]
    space = SimpleNamespace(progress=Progress(quiet=True))
    case: Any = SimpleNamespace(
        calls_compared=(1, 2, 3), space=space, until=until, seconds=60.0, settings=SimpleNamespace(budget=None)
    )
    return case, Verified(cast(Any, SimpleNamespace(wanted=tuple(recipes))), found)


@pytest.mark.parametrize(
    ("each", "until", "places"), [(0.2, math.inf, 40), (2.0, math.inf, 29), (1e4, math.inf, 6), (2.0, 70.0, 6)]
)
def test_the_fastest_go_on_where_all_would_take_too_long(
    each: float, until: float, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """metis: 132 builds at the calls of three kinds took 211 s, and the run ended without an answer."""
    asked: list[int] = []

    def first_race(case: Any, seen: Any, built: Any, found: Any, snapshots: Any, places: int) -> dict[Variant, str]:
        asked.append(places)
        return {Variant(f"c{k}"): "slower" for k in range(places, 40)}

    case, verified = raced(40, until=until)
    monkeypatch.setattr(further_calls, "first_race", first_race)
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    others: Any = SimpleNamespace(tried=(SimpleNamespace(case=SimpleNamespace(calls_compared=(7, 8, 9))),))
    now = fastest_first(case, cast(Any, None), replace(verified, each=each), others, cast(Any, lambda: None))
    assert asked == ([] if places == 40 else [places])
    assert {r.variant for r in now.good} == {IDENTITY, *(Variant(f"c{k}") for k in range(places))}
    assert now.racing.keys() == {r.variant for r in now.good}
    left = [r.candidate for r in verified.good if r.candidate is not None and now.is_left(r.candidate)]
    assert [c.id for c in left] == [f"c{k}" for k in range(places, 40)]


@pytest.mark.parametrize(
    ("until", "kinds", "seconds"), [(math.inf, 0, 60.0), (240.0, 2, 45.0), (100.0, 2, 15.0), (0.0, 0, 15.0)]
)
def test_building_has_its_part_of_what_the_run_has_left(
    until: float, kinds: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    assert step_seconds(raced(1, until=until)[0], cast(Any, SimpleNamespace(tried=(None,) * kinds))) == seconds


def test_no_race_where_the_unchanged_mock_up_is_wrong() -> None:
    case, verified = raced(40)
    wrong = replace(verified, each=1e6, found={**verified.found, IDENTITY: Finding("it left other bytes")})
    never: Any = None
    assert fastest_first(case, never, wrong, cast(Any, SimpleNamespace(tried=())), never) is wrong


def test_calls_of_all_kinds_were_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three calls of the first kind and one of another were told as "compared at 1 call (3 wanted)"."""
    _, verified = raced(1)
    built: Any = Built(cast(Any, None), verified.good, {})
    verified = replace(verified, built=built, calls=3)
    steps = {
        "at_another_call": (cast(Any, SimpleNamespace(derived=())), verified.good, {}),
        "concerns": True,
        "source_of": None,
        "verify_at": (built, verified.found, True),
        "verify_further": replace(verified, calls=1),
    }
    for name, result in steps.items():
        monkeypatch.setattr(further_calls, name, lambda *_, result=result: result)
    kinds = (SimpleNamespace(text="calls like call 7"),)
    profiled = SimpleNamespace(module=None, function=None)
    space = SimpleNamespace(progress=Progress(quiet=True))
    case: Any = SimpleNamespace(chosen=SimpleNamespace(call=7), kinds=kinds, profiled=profiled, space=space)
    nothing: Any = None
    seen: Any = Observation(nothing, nothing, (), nothing, nothing)
    there, whole = verify_kind(Other(case, nothing, seen, nothing), seen, nothing, verified)
    assert (there.verified.calls, whole.calls) == (1, 4)


@pytest.mark.parametrize(
    ("until", "restores", "timed", "left"), [(math.inf, None, 3, []), (0.0, None, 2, [20]), (0.0, 5, 3, [])]
)
def test_no_further_kind_is_timed_when_the_run_has_to_end(
    monkeypatch: pytest.MonkeyPatch, until: float, restores: int | None, timed: int, left: list[int]
) -> None:
    """metis: ten kinds of calls took 219 s. What is asked for is timed; nothing is where no candidate changes anything."""

    def at_kind(call: int, unaffected: frozenset[Variant]) -> Any:
        settings = SimpleNamespace(restores=restores)
        case = SimpleNamespace(until=until, kinds=(SimpleNamespace(call=call),), settings=settings)
        other = SimpleNamespace(case=case, seen=None, snapshots=lambda: None)
        return SimpleNamespace(other=other, verified=SimpleNamespace(built=None), unaffected=unaffected)

    candidate = Variant("c1")
    contest = SimpleNamespace(entrants=[SimpleNamespace(variant=candidate)])
    main: Any = SimpleNamespace(times=SimpleNamespace(contest=contest))
    monkeypatch.setattr(further_calls, "measure_kind", lambda case, *rest, beside: KindTimed(case, rest[1], None))
    kinds = [at_kind(20, frozenset()), at_kind(30, frozenset((candidate,)))]
    found, others = time_kinds(main, kinds, cast(Any, SimpleNamespace(racing={})), (), Others(left_out={9: "too short"}))
    assert len(found) == timed
    assert found[0] is main
    assert others.left_out.keys() == {9, *left}
