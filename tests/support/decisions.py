"""Decisions about what a machine with known times shows: their requests are answered from that machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from layout_advise.decide.decision import Decision
from layout_advise.decide.requests import (
    Answer,
    Asking,
    MeasureMore,
    Request,
    RunLive,
    TimeCode,
    TimeInProgram,
)
from layout_advise.decide.single import decide_single
from layout_advise.decide.verdict import LiveWish, VerdictContext
from layout_advise.measure.first_times import FirstTimes, first_times, look_at_original
from layout_advise.measure.live.outcome import LiveTrial
from layout_advise.measure.setup import Bench, Contest, Entrant
from layout_advise.measure.stage import time_built
from layout_advise.mockup.timing.plan import Memory, TimingPlan
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import (
    IDENTITY,
    IDENTITY_BLOCKS,
    IDENTITY_RESTRICT,
    IDENTITY_SIMD,
    IDENTITY_UNROLLED,
    MACHINE_CODE,
    ORIGINAL,
    SCALAR,
    SHADOW,
    Variant,
    machine_code,
    machine_code_moved,
    machine_code_twice,
)
from tests.support.mockups.fake_machine import TRUE_NS, FakeMachine
from tests.support.variants import variant

Rebuild = Callable[[Variant, Sequence[Variant], bool], Mapping[Variant, Path]]
"""Builds a candidate and what it is compared with anew; also at other places where the last argument says so."""


@dataclass(frozen=True, slots=True)
class KindAtMachine:
    """The calls of one kind on the machine, timed once. ``in_program_ns``: what further runs of the program would show."""

    times: FirstTimes
    rebuild: Rebuild
    in_program_ns: float | None = None
    most_restores: int = 0
    live: Mapping[Variant, LiveTrial] = field(default_factory=dict)
    code: Sequence[Timings] = ()
    """The times by machine code, of ever more processes."""

    def code_for(self, known: Timings | None) -> Timings | None:
        """The times by machine code: the first ones, or those after what is ``known`` already, if there are any."""
        more = [one for one in self.code if known is None or len(one.steady) > len(known.steady)]
        return more[0] if more else None

    def more(self, first: Timings) -> Timings | None:
        """Twice as many processes, as long as there are not more than ``most_restores``."""
        done = len(first.steady)
        if 2 * done > self.most_restores:
            return None
        bench = replace(self.times.bench, plan=replace(self.times.bench.plan, restores=2 * done))
        return bench.measure(self.times.contest.timed(), "more", more=first)


def timed_once(
    contest: Contest,
    bench: Bench,
    rebuild: Rebuild,
    in_situ_ns: float | None,
    *,
    places: Mapping[Variant, Path] | None = None,
    in_program_ns: float | None = None,
) -> KindAtMachine:
    """Everything timed once, as :func:`layout_advise.measure.stage.measure_kind` does. ``places`` are the candidates' builds
    at other places; None: times do not depend on these."""
    if places is not None:
        bench, as_in_program = look_at_original(bench, in_situ_ns)
        contest = replace(contest, places=places) if as_in_program else contest
    return KindAtMachine(first_times(contest, bench), rebuild, in_program_ns)


def answered(asking: Asking[Decision], kinds: Sequence[KindAtMachine | None]) -> Decision:
    """The decision, with everything measured that it asks for on the way."""
    answer: Answer = None
    while True:
        try:
            request = asking.send(answer)
        except StopIteration as done:
            decision: Decision = done.value
            return decision
        kind = kinds[request.kind]
        assert kind is not None, "nothing was timed of these calls"
        answer = _answer(request, kind)


def _answer(request: Request, kind: KindAtMachine) -> Answer:
    if isinstance(request, TimeInProgram):
        return kind.in_program_ns
    if isinstance(request, MeasureMore):
        return kind.more(request.first)
    if isinstance(request, TimeCode):
        return kind.code_for(request.more)
    if isinstance(request, RunLive):
        return kind.live.get(request.variant, LiveTrial(None, "nobody runs it"))
    built = kind.rebuild(request.variant, kind.times.contest.compared_with(request.variant), request.places)
    return time_built(
        kind.times,
        built,
        request.variant,
        request.first,
        request.mode,
        unrolled=request.unrolled,
        restores=request.restores,
    )


def code_times(
    *, once: float, twice: float, elsewhere: float = 1000.0, layout: str = "c1", moved: float | None = None
) -> Timings:
    """The ns of the original's machine code on a layout, of that with its work on addresses done twice, of the code with
    nothing moved, and with ``s0`` moved and laid out as it was; the original takes 1000."""
    known = {
        ORIGINAL: 1000.0,
        SHADOW: 1000.0,
        MACHINE_CODE: elsewhere,
        machine_code(layout): once,
        machine_code_twice(layout): twice,
    }
    known |= {machine_code_moved({"s0"}): moved} if moved is not None else {}
    return Timings(steady=[{name: [k * ns] * 9 for name, ns in known.items()} for k in (1.0, 1.001, 0.999, 1.002, 0.998)])


LAYOUT_SCALAR = variant("c1").scalar
TIMES = {ORIGINAL: 1000.0, IDENTITY: 1000.0, SCALAR: 2000.0, LAYOUT_SCALAR: 1900.0}


def contest(
    monkeypatch: pytest.MonkeyPatch,
    times: dict[Variant, float],
    vectors: bool = True,
    in_situ: tuple[float, float | None] = (1000.0, None),
    *,
    branches: bool = True,
    blocked: bool = False,
    placed: bool = False,
    forgets: bool = True,
    most_restores: int = 0,
    live: LiveTrial | None = None,
    wish: LiveWish = "auto",
    code: Sequence[Timings] = (),
) -> Decision:
    """The decision about one candidate, on a machine on which everything takes ``times``."""
    for name, ns in times.items():
        monkeypatch.setitem(TRUE_NS, str(name), ns)
    forms = (IDENTITY, SCALAR, IDENTITY_RESTRICT, IDENTITY_SIMD, IDENTITY_UNROLLED)
    controls = {name: Path(str(name)) for name in forms if name in times}
    (candidate,) = (name for name in times if name.is_contender)

    def rebuild(best: Variant, names: Sequence[Variant], places: bool) -> dict[Variant, Path]:
        assert best == candidate
        further = (*best.elsewhere, *IDENTITY.elsewhere)
        wanted = [best, *names, LAYOUT_SCALAR, *(n for n in further if places and n in times)]
        wanted += [n for n in (IDENTITY_BLOCKS, best.reread) if n in times]
        return {n: Path(str(n)) for n in wanted if vectors or n not in (SCALAR, LAYOUT_SCALAR)}

    entrant = Entrant(candidate, "store it", "verified", Path(str(candidate)), blocked=blocked)
    places = {n: Path(str(n)) for n in candidate.elsewhere if n in times}
    bench = Bench(
        FakeMachine(),
        Memory(),
        TimingPlan(restores=7),
        TimingPlan(restores=5, around=True),
        lambda text, i, n: None,
        branches=branches,
        forgets=branches and forgets,
    )
    kind = timed_once(
        Contest(controls, [entrant]),
        bench,
        rebuild,
        in_situ[0],
        places=places if placed else None,
        in_program_ns=in_situ[1],
    )
    kind = replace(kind, most_restores=most_restores, live={candidate: live} if live is not None else {}, code=code)
    context = VerdictContext("criu", "verified", True, live=wish)
    return answered(decide_single(kind.times, in_situ[0], context), [kind])
