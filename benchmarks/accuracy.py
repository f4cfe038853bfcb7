"""Predicted against hand-written speedups of the examples: ``python benchmarks/accuracy.py``.

For each example, size and set of flags, in one run and in interleaved rounds: the original and the hand-transformed
versions, each in its own process, in rotated order (``-t``: first decile of the thread CPU times of the calls, as the tool
takes it: ``docs/decisions/0005``), a few rounds of them before the tool works on the original, one after each process in
which it times its mock-ups, and a few afterwards. What the machine does in that time, it does to both. The hand-written
speedup is that of the undisturbed processes (first decile again; beyond the L2 the usual one), its range that
of the processes before, between and after. One row is written as soon as it is measured, and a row that is there already is
not measured again (``--again`` to do so).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from cases import CASES, VARIANTS, WIDER_THAN_SSE, Match, converted, is_wide
from summary import summary

from layout_advise import pipeline
from layout_advise.cli import parser
from layout_advise.commands import trace
from layout_advise.machine import cpu_fields
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.statistics import undisturbed
from layout_advise.plan.whole_program import Gain, RegionPart, amdahl
from layout_advise.progress import Progress
from layout_advise.reports.model.candidate import CandidateReport, Interval
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.tracer.sampling.turns import set_apart

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
RESULTS = Path(__file__).resolve().parent / "results" / "accuracy"
"""A folder in it for each kind of processor: what was measured on another one is not measured yet."""
SETS = {"gcc": ("O2", "O3-haswell"), "clang": ("clang-O2", "clang-O3-haswell")}
"""What the examples are built with: the folder under ``bin`` says compiler and flags."""
WIDE_SETS = {"gcc": ("O3-avx512",), "clang": ("clang-O3-avx512",)}
"""Further ones, where the processor has what they use (``make avx512``)."""
WIDE_FEATURES = frozenset(("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"))

TIMING_STEP = "measuring"
"""What the steps of the tool begin with in which it times."""

MOVED_BY = (16, 32, 48)
QUIET = 0.25
"""Which quantile of the processes' chores is that of an undisturbed core."""
MOST_ROUNDS = 40
"""Rounds of processes before the tool's run, and as many after it, where processes are short."""

HAND_SECONDS = 12.0
"""After that long no further round is begun (but ``--rounds`` at least are made, before and after), unless ``--seconds``.

A process of some ten milliseconds lies as a whole in a disturbed or in a quiet phase of the machine: the same binary on
the same data took 63 µs a call in most processes and 153 µs in others. The decile of few processes is then luck.
"""


@dataclass(frozen=True)
class Run:
    """One process: undisturbed ns of a call, the first decile of the chores beside the calls, and whether calls lay between
    undisturbed chores (only these count then)."""

    ns: float
    chore: float
    calm: bool


@dataclass(frozen=True)
class Setting:
    """One configuration: an example built with ``flags``, run at one size on so many threads (None: it has none of its
    own)."""

    example: str
    size: str
    flags: str
    threads: int | None

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the program."""
        return CASES[self.example].sizes[self.size]

    @property
    def size_text(self) -> str:
        """The size, and the number of threads where it matters."""
        if self.threads is None:
            return self.size
        return f"{self.size}, {self.threads} thread{'s' if self.threads > 1 else ''}"

    def builds(self, version: str) -> tuple[str, ...]:
        """The programs of a version: one, or several whose code lies at other places."""
        hangs = CASES[self.example].places or self.size == "small"
        places = ("", *(f"+{by}" for by in MOVED_BY)) if hangs and version != self.example else ("",)
        return tuple(f"{version}{place}" for place in places)

    @property
    def file(self) -> Path:
        """Where its rows are kept."""
        threads = f"-threads{self.threads}" if self.threads else ""
        return RESULTS / processor() / f"{self.example}-{self.size}-{self.flags}{threads}.json"

    def program(self, version: str) -> Path:
        """The binary of one version."""
        return EXAMPLES / self.example / "bin" / self.flags / version

    @property
    def wide(self) -> bool:
        """Whether it is built for registers of more than 16 bytes."""
        return is_wide(self.flags)

    @property
    def environment(self) -> dict[str, str]:
        """What the program and the tool are started with."""
        return {**os.environ, "OMP_NUM_THREADS": str(self.threads)} if self.threads else dict(os.environ)


@cache
def processor() -> str:
    """Vendor, family and model of this machine's processor: its name alone is often a whole line's."""
    fields = cpu_fields()
    vendor = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(fields["vendor_id"], fields["vendor_id"])
    return f"{vendor}-{fields['cpu family']}-{fields['model']}"


def sets_of(compiler: str, wide: bool) -> tuple[str, ...]:
    """What is built by ``compiler``; ``wide``: with AVX-512 too."""
    return (*SETS[compiler], *(WIDE_SETS[compiler] if wide else ()))


def settings(only: list[str] | None, size: str | None, flags: list[str]) -> list[Setting]:
    """The configurations that are asked for; None: all."""
    return [
        Setting(example, one, built, threads)
        for example in only or CASES
        for one in CASES[example].sizes
        for built in flags
        for threads in CASES[example].threads or (None,)
        if (size or one) == one
    ]


def run_program(setting: Setting, version: str, chore: float) -> Run:
    """A process of its own. It waits for moments in which a fixed loop takes ``chore`` ns, as it does when
    nothing else uses the core."""
    command = [str(setting.program(version)), "-t", *setting.arguments]
    known = {**setting.environment, "EXAMPLE_CHORE": str(chore)}
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=known).stdout
    values = {line.split()[0]: float(line.split()[1]) for line in out.splitlines() if len(line.split()) == 2}
    return Run(values["undisturbed_ns"], values["chore_ns"], values["calm_calls"] > 0)


def build(setting: Setting) -> None:
    """What ``make all`` does not: the versions with their code at other places."""
    programs = [setting.program(name) for v in CASES[setting.example].versions for name in setting.builds(v)]
    subprocess.run(["make", "-s", "-C", str(EXAMPLES), *(str(p.relative_to(EXAMPLES)) for p in programs)], check=True)


@dataclass(frozen=True)
class Effort:
    """At least ``rounds`` rounds of processes before and after the tool's run, none begun after ``seconds`` beyond that."""

    rounds: int
    seconds: float


class Hand:
    """The processes of the original and of the hand-written versions, by the part of the run that they lie in."""

    def __init__(self, setting: Setting, effort: Effort) -> None:
        self.setting, self.effort = setting, effort
        self.parts: list[list[dict[str, Run]]] = []
        self._names = [name for v in (setting.example, *CASES[setting.example].versions) for name in setting.builds(v)]
        self._chores = [run_program(setting, setting.example, 0.0).chore for _ in range(effort.rounds)]

    @property
    def rounds(self) -> list[dict[str, Run]]:
        """Those of all parts."""
        return [one for part in self.parts for one in part]

    def times(self, program: str) -> list[list[int]]:
        """Undisturbed ns of a call in each process, by the part of the run."""
        return [[round(one[program].ns) for one in part] for part in self.parts]

    def part(self) -> None:
        """What follows lies in another part of the run."""
        self.parts.append([])

    def turn(self) -> None:
        """Every version once, the order rotated."""
        by = len(self.rounds) % len(self._names)
        names = [*self._names[by:], *self._names[:by]]
        # not the fastest: while the clock is boosted for a moment all other processes would wait in vain
        chore = float(np.quantile(self._chores, QUIET))
        self.parts[-1].append({name: run_program(self.setting, name, chore) for name in names})
        self._chores += [one.chore for one in self.parts[-1][-1].values()]

    def turns(self) -> None:
        """As many as the effort asks for; at most ``MOST_ROUNDS``."""
        self.part()
        begun = time.monotonic()
        while len(self.parts[-1]) < self.effort.rounds or (
            len(self.parts[-1]) < MOST_ROUNDS and time.monotonic() - begun < self.effort.seconds
        ):
            self.turn()


class Between(Progress):
    """Runs the hand-written versions after each process in which the tool timed its mock-ups."""

    def __init__(self, hand: Hand) -> None:
        super().__init__(quiet=True)
        self._hand = hand
        self.apart = 0.0
        """Seconds that this took: no part of the tool's time."""

    def count(self, text: str, done: int, total: int) -> None:
        """A process has been timed, or something else counted."""
        if text.startswith(TIMING_STEP):
            begun = time.monotonic()
            with set_apart():
                self._hand.turn()
            self.apart += time.monotonic() - begun


def undisturbed_of(rounds: list[dict[str, Run]], program: str) -> float:
    """A call in the processes that had undisturbed moments, if there are some; else in all."""
    runs = [one[program] for one in rounds]
    return undisturbed([r.ns for r in runs if r.calm] or [r.ns for r in runs])


def speedup_of(rounds: list[dict[str, Run]], setting: Setting, version: str) -> float:
    """Original over version, each in its undisturbed processes; over the mean where it lies at several places. Where the L2
    does not hold the data, each takes its usual time (``docs/decisions/0045``)."""
    if setting.size != "small":
        usual = {name: float(np.quantile([one[name].ns for one in rounds], TIMING.typical)) for name in rounds[0]}
        return usual[setting.example] / fmean(usual[b] for b in setting.builds(version))
    return undisturbed_of(rounds, setting.example) / fmean(undisturbed_of(rounds, b) for b in setting.builds(version))


def advise(setting: Setting, keep: Path | None, hand: Hand) -> tuple[Report, float]:
    """The tool's report on the original, and its seconds; its run stays in ``keep``, where that is given."""
    program = [str(setting.program(setting.example)), *setting.arguments]
    with tempfile.TemporaryDirectory() as folder:
        run = (keep or Path(folder)).absolute() / setting.file.stem
        shutil.rmtree(run, ignore_errors=True)
        wanted = [word for name in CASES[setting.example].regions for word in ("--hotspot", name)]
        arguments = parser().parse_args(["trace", "--json", "-", "-o", str(run), *wanted, "--", *program])
        os.environ.update(setting.environment)
        with Between(hand) as progress:
            report = pipeline.advise(trace.settings(arguments), progress)
        assert report is not None
        return report, report.seconds.total - progress.apart


def predicted_over_regions(report: Report, match: Match, variant: str) -> tuple[Interval | None, str | None]:
    """The program's speedup by the layout that corresponds to a hand-written version, in the ``variant`` of each region that
    is written as that is, or by the plan where that converts between them; and the layout's id."""
    plan = report.plan
    if match is converted:
        one = plan.structures[0] if plan is not None else None
        if one is None or not one.converting:
            return None, None
        return one.program, "converted"
    built = ((h, c) for h in report.hotspots for c in h.candidates if c.variant == variant)
    known = {(h.name or h.symbol, c.id.partition("-")[0]): c.speedup for h, c in built}
    names = {c.id.partition("-")[0] for h in report.hotspots for c in h.candidates if match(c)}
    found: list[tuple[Gain, str]] = []
    for row in report.over_regions:
        gains = [known.get((r.hotspot, row.candidate)) or r.speedup for r in row.regions]
        shares = [r.share for r in row.regions]
        if row.candidate in names and all(gains):
            parts = [RegionPart(s, Gain(g.median, g.lo, g.hi)) for s, g in zip(shares, gains, strict=True) if g]
            found.append((amdahl(parts), row.candidate))
    best = max(found, key=lambda one: one[0].median, default=None)
    return (Interval(best[0].median, best[0].lo, best[0].hi), best[1]) if best is not None else (None, None)


def predicted(hotspot: HotspotReport, match: Match, variant: str) -> CandidateReport | None:
    """The measured candidate that corresponds to a hand-written version."""
    found = [c for c in hotspot.candidates if c.speedup is not None and c.variant == variant and match(c)]
    return max(found, key=lambda c: c.speedup.median if c.speedup else 0.0, default=None)


def measure(setting: Setting, effort: Effort, keep: Path | None) -> list[dict[str, Any]]:
    """All rows of one configuration."""
    hand_written = Hand(setting, effort)
    hand_written.turns()
    hand_written.part()
    report, seconds = advise(setting, keep, hand_written)
    hotspot, several = report.hotspots[0], bool(CASES[setting.example].regions)
    hand_written.turns()
    identity = hotspot.identity
    rows = []
    for version, match in CASES[setting.example].versions.items():
        hand = speedup_of(hand_written.rounds, setting, version)
        parts = [speedup_of(part, setting, version) for part in hand_written.parts if part]
        alike = setting.wide or version not in WIDER_THAN_SSE
        candidate = predicted(hotspot, match, VARIANTS.get(version, "plain")) if alike and not several else None
        interval, name = (candidate.speedup, candidate.id) if candidate else (None, None)
        if several:
            interval, name = predicted_over_regions(report, match, VARIANTS.get(version, "plain"))
        speedup = interval.median if interval else None
        rows.append(
            {
                "example": setting.example,
                "size": setting.size_text,
                "flags": setting.flags,
                "version": version,
                "hand": hand,
                "hand_range": [min(parts), max(parts)],
                "processes": len(hand_written.rounds),
                "hand_ns": {n: hand_written.times(n) for n in (setting.example, *setting.builds(version))},
                "predicted": speedup,
                "predicted_interval": [interval.lo, interval.hi] if interval else None,
                "error": speedup / hand - 1 if speedup else None,
                "candidate": name,
                "evidence": candidate.evidence if candidate else "verified" if interval else None,
                "identity": identity.ratio.median if identity and identity.ratio else None,
                "identity_evidence": identity.evidence if identity else None,
                **answer(report),
                "seconds": seconds,
            }
        )
    return rows


def answer(report: Report) -> dict[str, Any]:
    """The verdict of the run: that of the plan, where several regions were studied."""
    verdict = report.hotspots[0].verdict
    if report.plan is None:
        return {"verdict": verdict.action, "reason": verdict.reason, "gain": verdict.gain}
    one = report.plan.structures[0]
    gain = one.program.lo if one.action == "change" else None
    return {"verdict": one.action, "reason": "plan", "gain": gain}


def show(value: float | None, form: str = ".2f") -> str:
    """A number or a dash."""
    return "–" if value is None else format(value, form)


def span(ends: list[float] | None) -> str:
    """The range or interval beside a number."""
    return f"({ends[0]:.2f}–{ends[1]:.2f})" if ends else ""


def table(rows: list[dict[str, Any]]) -> str:
    """All rows as Markdown."""
    lines = [
        "| example | size | flags | hand-written version | hand | predicted | error | evidence | identity | verdict | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        verdict = r["verdict"] + (f" {r['gain']:.2f}" if r["gain"] else f" ({r['reason']})")
        identity = f"{show(r['identity'], '.3f')} ({r['identity_evidence'] or '–'})"
        lines.append(
            f"| {r['example']} | {r['size']} | {r['flags']} | {r['version']} | "
            f"{show(r['hand'])} {span(r.get('hand_range'))} | "
            f"{show(r['predicted'])} {span(r.get('predicted_interval'))} | "
            f"{show(r['error'], '+.1%')} | {r['evidence'] or '–'} | {identity} | "
            f"{verdict} | {r['seconds']:.0f} |"
        )
    return "\n".join(lines)


def print_rows(rows: list[dict[str, Any]]) -> None:
    """Print the table and what it says of the targets."""
    print(table(rows))
    print("", *summary(rows), sep="\n")


def main() -> int:
    """Measure what is missing and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", action="append", choices=sorted(CASES), help="these examples only")
    options.add_argument("--size", choices=("small", "medium", "large"), help="this size only")
    options.add_argument("--compiler", choices=sorted(SETS), help="built by this compiler only (default: all that are here)")
    known = [flags for compiler in SETS for flags in sets_of(compiler, wide=True)]
    options.add_argument("--flags", choices=known, help="these flags only")
    options.add_argument(
        "--rounds", type=int, default=3, help="at least so many rounds of processes before and after (default: 3)"
    )
    options.add_argument(
        "--seconds",
        type=float,
        default=HAND_SECONDS,
        help="begin no further round after that long, before and after (default: %(default)s)",
    )
    options.add_argument("--keep", type=Path, metavar="DIR", help="keep the tool's runs in this folder")
    options.add_argument("--again", action="store_true", help="measure rows again that are there")
    measured = sorted(folder.name for folder in RESULTS.iterdir()) if RESULTS.is_dir() else []
    options.add_argument("--of", choices=measured, help="measure nothing: print what was measured on that processor")
    arguments = options.parse_args()
    if arguments.of:
        print_rows([row for file in sorted((RESULTS / arguments.of).iterdir()) for row in json.loads(file.read_text())])
        return 0
    wide = set(cpu_fields().get("flags", "").split()) >= WIDE_FEATURES
    subprocess.run(["make", "-s", "-C", str(EXAMPLES), "all", *(["avx512"] if wide else [])], check=True)
    compilers = [arguments.compiler] if arguments.compiler else [name for name in SETS if shutil.which(name)]
    effort = Effort(arguments.rounds, arguments.seconds)
    (RESULTS / processor()).mkdir(parents=True, exist_ok=True)
    shown: list[dict[str, Any]] = []
    flags = [f for compiler in compilers for f in sets_of(compiler, wide) if (arguments.flags or f) == f]
    for setting in settings(arguments.only, arguments.size, flags):
        if not setting.program(setting.example).exists():
            print(f"{setting.example} {setting.flags}: not built here, as where clang's OpenMP is missing", file=sys.stderr)
            continue
        if arguments.again or not setting.file.exists():
            print(f"{setting.example} {setting.size_text} {setting.flags} …", file=sys.stderr)
            build(setting)
            setting.file.write_text(json.dumps(measure(setting, effort, arguments.keep), indent=1) + "\n")
        shown += json.loads(setting.file.read_text())
    print_rows(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
