"""How often a change is advised where there is none: ``python benchmarks/false_advice.py --decisions 20``.

The unchanged mock-up takes part under other names, 24 at a time, each in a file of its own, with its code at all the places
that a candidate's would have: the same code on the same layout. Everything else is as in any run: restored processes, all
doubts, the winner measured again. Every ``change`` is false. Decisions are made quiet and, with ``--neighbour``, beside a
process that this script starts: it streams through memory and adds, in phases of random length. The rate's upper end is
Clopper and Pearson's (95 %). Each decision is written down as it is made, with the commit; what is there is not made again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from cases import CASES
from scipy import stats

from layout_advise import pipeline, road
from layout_advise.build.machine_code import build_codes
from layout_advise.build.stage import Built
from layout_advise.commands import trace
from layout_advise.decide.decision import Decision
from layout_advise.errors import LayoutAdviseError
from layout_advise.measure import stage
from layout_advise.measure.contest import contest_of
from layout_advise.measure.policy import MEASURE
from layout_advise.measure.setup import Contest, Entrant
from layout_advise.mockup.readdressed.moves import unmoved
from layout_advise.mockup.timing.variants import IDENTITY, MACHINE_CODE, Variant, machine_code, machine_code_twice
from layout_advise.observe.case import Case
from layout_advise.progress import Progress
from layout_advise.propose.proposals import Proposed
from layout_advise.propose.source import Source
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.verify.machine_code import compared_code
from layout_advise.verify.policy import VERIFY

sys.path.append(str(Path(__file__).resolve().parent / "campaigns"))
from which_commit import which_commit

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path(__file__).resolve().parent / "results" / "false_advice.jsonl"
DISGUISES = 24
PROGRAMS = ("particles", "wave", "kmeans", "lattice", "nbody", "scan", "entities")


@dataclass(frozen=True, slots=True)
class Condition:
    """What decisions are made of: an example built with ``flags``, ``budget`` seconds of measuring, beside a noisy
    ``neighbour`` or not, and the commit."""

    program: str
    flags: str
    budget: float
    neighbour: bool
    commit: str


@dataclass(frozen=True, slots=True)
class MadeDecision:
    """One decision: verdict, its reason, and the interval that is told."""

    of: Condition
    action: str
    reason: str
    interval: tuple[float, float] | None


def read(path: Path) -> list[MadeDecision]:
    """The decisions so far."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [MadeDecision(**{**row, "of": Condition(**row["of"])}) for row in map(json.loads, lines)]


def kept(of: Condition, decision: Decision) -> None:
    """Writes one decision down."""
    verdict = decision.verdict
    interval = (verdict.interval.lo, verdict.interval.hi) if verdict.interval else None
    with KEPT.open("a") as file:
        file.write(json.dumps(asdict(MadeDecision(of, verdict.action, str(verdict.reason), interval))) + "\n")


def phases(seed: int) -> None:
    """Streams and adds, or sleeps, in phases of 5 ms to half a second, for ever."""
    rng, data = random.Random(seed), np.zeros(8 << 20)
    while True:
        end = time.monotonic() + rng.uniform(0.005, 0.5)
        busy = rng.random() < 0.6
        while time.monotonic() < end:
            if busy:
                data += 1.0
            else:
                time.sleep(0.002)


@contextmanager
def neighbour(wanted: bool) -> Generator[None]:
    """The noisy process, while it is wanted."""
    process = multiprocessing.Process(target=phases, args=(1,), daemon=True)
    if wanted:
        process.start()
    try:
        yield
    finally:
        if wanted:
            process.kill()
            process.join()


class Disguised:
    """Puts the identity in the place of all candidates, and makes many decisions of one stop of the program."""

    def __init__(self, folder: Path, decisions: int, made: Callable[[Decision], None]) -> None:
        self.folder, self.decisions, self.made = folder, decisions, made
        self._contest, self._measure = contest_of, stage.measure_kind
        self._decision, self._answered = road._decision, road._answered
        self._measured: tuple[Any, ...] = ()
        self._decided: tuple[Any, ...] = ()

    def _copy(self, path: Path, name: str) -> Path:
        return Path(shutil.copy(path, self.folder / f"{name}-{len(list(self.folder.iterdir()))}.so"))

    def contest_of(self, *args: Any) -> Contest:
        """The contest of the unchanged mock-up with itself."""
        real: Contest = self._contest(*args)
        own = real.controls[IDENTITY]
        entrants = [Entrant(Variant(f"d{k}"), "store it", "verified", self._copy(own, f"d{k}")) for k in range(DISGUISES)]
        return Contest(real.controls, entrants)

    def rebuild(self, space: object, built: Any, variant: Variant, others: Sequence[Variant], *, places: bool) -> Any:
        """Copies of what there is: building anew would make the same code."""
        wanted = [(name, name) for name in others] + [(variant, IDENTITY)]
        if places:
            wanted += [(name, name) for form in others for name in form.elsewhere]
            wanted += zip(variant.elsewhere, IDENTITY.elsewhere, strict=True)
        return SimpleNamespace(paths=self._copies(built, wanted))

    def with_places(self, built: Built, variants: Collection[Variant]) -> Built:
        """``built`` with the disguises at other places too, where the unchanged mock-up is."""
        wanted = [pair for v in variants for pair in zip(v.elsewhere, IDENTITY.elsewhere, strict=True)]
        return replace(built, places=self._copies(built, wanted))

    def _copies(self, built: Built, wanted: Sequence[tuple[Variant, Variant]]) -> dict[Variant, Path]:
        """Of each pair the second one's file, under the name of the first; without those that were not built."""
        paths = [(name, built.paths.get(source)) for name, source in wanted]
        return {name: self._copy(path, str(name)) for name, path in paths if path is not None}

    def code_mockups(self, case: Case, parked: AgentProcess, proposed: Proposed, layouts: tuple[str, ...]) -> Any:
        """The original's machine code with nothing moved, under the names of the disguises too."""
        assert isinstance(proposed.source, Source)
        names = [(MACHINE_CODE,), *((machine_code(name), machine_code_twice(name)) for name in layouts)]
        wanted = [(forms, unmoved(proposed.seen.trace)) for forms in names]
        made = build_codes(proposed.seen.region, proposed.source, wanted, case.space.region.mockups)
        return compared_code(case.space, parked, proposed.source, made, VERIFY.budget_s)

    def answered(self, asking: Any, timed: Sequence[stage.KindTimed], trial: Any, *code: Any) -> Decision:
        """As many decisions as are wanted; the last one is the run's. What asks for no times is answered as it is."""
        decided: Decision
        if not timed:
            decided = self._answered(asking, timed, trial, *code)
            return decided
        for number in range(self.decisions):
            if number:
                timed = [self._measure(*self._measured)]
                asking = self._decision(timed, *self._decided)
            decided = self._answered(asking, timed, trial, *code)
            self.made(decided)
        return decided

    def measured(self, *args: Any) -> stage.KindTimed:
        """Keeps what the calls are measured with, for further decisions."""
        self._measured = args
        return self._measure(*args)

    def decision(self, timed: Any, *args: Any) -> Any:
        """Keeps what a decision is made from."""
        self._decided = args
        return self._decision(timed, *args)

    @contextmanager
    def in_place(self) -> Generator[None]:
        """The road with the disguises on it."""
        with (
            mock.patch.object(stage, "contest_of", self.contest_of),
            mock.patch.object(stage, "rebuild", self.rebuild),
            mock.patch.object(stage, "with_places", self.with_places),
            mock.patch.object(road, "measure_kind", self.measured),
            mock.patch.object(road, "_decision", self.decision),
            mock.patch.object(road, "_answered", self.answered),
            mock.patch.object(road, "_code_mockups", self.code_mockups),
        ):
            yield


def decide(of: Condition, decisions: int) -> None:
    """Makes so many decisions and writes them down."""
    binary = ROOT / "examples" / of.program / "bin" / of.flags / of.program
    parser = argparse.ArgumentParser()
    trace.add_arguments(parser)
    with tempfile.TemporaryDirectory() as folder:
        words = f"-q -o {folder}/run --no-live --candidates 1 --budget {of.budget:g} --".split()
        settings = trace.settings(parser.parse_args([*words, str(binary), *CASES[of.program].sizes["small"]]))
        (Path(folder) / "copies").mkdir()
        disguised = Disguised(Path(folder) / "copies", decisions, lambda decision: kept(of, decision))
        with disguised.in_place(), Progress(quiet=True, verbose=False) as progress:
            try:
                pipeline.advise(settings, progress)
            except LayoutAdviseError as error:
                print(f"{of.program}: {error.line()}", file=sys.stderr)


def rate(rows: Collection[MadeDecision]) -> str:
    """The rate of false advice with its upper end, and how the others were decided."""
    wrong, count = sum(row.action == "change" for row in rows), len(rows)
    if not count:
        return "no decision"
    upper = stats.beta.ppf(0.95, wrong + 1, count - wrong) if wrong < count else 1.0
    actions = Counter(f"{row.action} ({row.reason})" for row in rows)
    said = ", ".join(f"{action} {number}" for action, number in actions.most_common())
    return f"change in {wrong} of {count} decisions ({wrong / count:.1%}, at most {upper:.1%}): {said}"


def main() -> int:
    """Make the decisions and print the rate."""
    parser = argparse.ArgumentParser(description="how often a change is advised where there is none")
    parser.add_argument("--decisions", type=int, default=20, help="for each program (default: 20)")
    parser.add_argument("--only", action="append", choices=sorted(CASES), help=f"these examples (default: {PROGRAMS})")
    parser.add_argument("--flags", default="O2", help="optimisation (default: O2)")
    parser.add_argument("--budget", type=float, default=MEASURE.budget_s, help="as of trace (default: %(default)g)")
    parser.add_argument("--neighbour", action="store_true", help="beside a noisy process")
    arguments = parser.parse_args()
    sought = {
        Condition(program, arguments.flags, arguments.budget, arguments.neighbour, which_commit())
        for program in arguments.only or PROGRAMS
    }
    subprocess.run(["make", "-s", "-C", str(ROOT / "examples"), "all"], check=True)
    with neighbour(arguments.neighbour):
        for of in sorted(sought, key=lambda one: one.program):
            missing = arguments.decisions - sum(row.of == of for row in read(KEPT))
            if missing > 0:
                decide(of, missing)
            print(f"{of.program}: {rate([row for row in read(KEPT) if row.of == of])}", flush=True)
    print(rate([row for row in read(KEPT) if row.of in sought]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
