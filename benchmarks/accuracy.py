"""Predicted against hand-written speedups of the examples: ``python benchmarks/accuracy.py``.

For each example, size and set of flags, in one run: the original and the hand-transformed versions, each in its own process,
in rotated order (``-t``: first decile of the thread CPU times of the calls, as the tool takes it: ``docs/decisions/0005``);
then ``layout-advise trace`` on the original; then the processes again. The hand-written speedup is that of the undisturbed
processes (first decile again), its range that of the processes before and of those after the tool's run. One row is
written as soon as it is measured, and a row that is there already is not measured again (``--again`` to do so).
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from summary import summary

from layout_advise.mockup.statistics import undisturbed
from layout_advise.reports.candidatemodel import CandidateReport
from layout_advise.reports.hotspotmodel import HotspotReport
from layout_advise.reports.model import read_report

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
RESULTS = Path(__file__).resolve().parent / "results"
SETS = {"gcc": ("O2", "O3-haswell"), "clang": ("clang-O2", "clang-O3-haswell")}
"""What the examples are built with: the folder under ``bin`` says compiler and flags."""

MOST_ROUNDS = 40
"""Rounds of processes before the tool's run, and as many after it, where processes are short."""

HAND_SECONDS = 12.0
"""After that long no further round is begun (but ``--rounds`` at least are made, before and after), unless ``--seconds``.

A process of some ten milliseconds lies as a whole in a disturbed or in a quiet phase of the machine: the same binary on
the same data took 63 µs a call in most processes and 153 µs in others. The decile of few processes is then luck.
"""

Match = Callable[[CandidateReport], bool]


def has(*families: str, block: int | None = None, without: tuple[str, ...] = (), structures: int | None = None) -> Match:
    """A candidate that does all of ``families`` (and none of ``without``), on that many structures."""

    def match(candidate: CandidateReport) -> bool:
        return (
            set(families) <= set(candidate.families)
            and not set(without) & set(candidate.families)
            and (block is None or candidate.block == block)
            and (structures is None or len(candidate.structures) == structures)
        )

    return match


@dataclass(frozen=True)
class Example:
    """``sizes``: name to arguments. ``versions``: hand-written version to the candidates that it corresponds to.
    ``threads``: the numbers of OpenMP threads that it is measured with; none: it has no threads of its own."""

    sizes: dict[str, tuple[str, ...]]
    versions: dict[str, Match]
    threads: tuple[int, ...] = ()


def hot_split(candidate: CandidateReport) -> bool:
    """The used fields in a structure of their own, kept together."""
    return "split" in candidate.families and len(candidate.parts) == 1 and candidate.derivation[-1:] == ("7",)


def grouped(*groups: str) -> Match:
    """The used fields in structures of their own, these together (space between names)."""
    wanted = {frozenset(group.split()) for group in groups}

    def match(candidate: CandidateReport) -> bool:
        return "split" in candidate.families and {frozenset(part.fields) for part in candidate.parts} == wanted

    return match


def view(candidate: CandidateReport) -> bool:
    """What is read copied in at each call, and what is written copied back."""
    return candidate.temporary


def by_class(candidate: CandidateReport) -> bool:
    """One of each two neighbours stored with its like, in all structures together."""
    joint = len(candidate.structures) == 3 and "split" in candidate.families
    return joint and all(term.startswith("S_{0;2} ⊗") for term in candidate.layout.values())


def elements_last(candidate: CandidateReport) -> bool:
    """An array for each number of the element, in all structures together."""
    factors = [int(f.removeprefix("A_")) for f in candidate.layout.get("s0", "").split(" ⊗ ") if f.startswith("A_")]
    joint = "soa" in candidate.families and len(candidate.structures) == 3
    return joint and bool(factors) and factors[-1] == max(factors)


# Only versions whose layout the tool also proposes are compared; the others (particles_aosoa and wave_parity keep unused
# fields inside, daxpy_aos merges two arrays, nbody_lanes changes the loop, list_array is another data structure) are
# measured by hand alone, to see that no advice is missed.
NOT_PROPOSED = has("none")
IN_VECTORS = {"kmeans_vectors": "simd", "kmeans_quads": "simd"}
"""Versions in vector types and what corresponds to them; all others are plain C, so it is the plain variant that counts."""
CASES: dict[str, Example] = {
    "particles": Example(
        {"small": ("5000", "2000"), "medium": ("100000", "600"), "large": ("1300000", "60")},
        {"particles_soa": has("soa"), "particles_split": hot_split, "particles_aosoa": has("aosoa", without=("compact",))},
    ),
    "wave": Example(
        {"small": ("80", "2000"), "medium": ("300", "600"), "large": ("1000", "100")},
        {
            "wave_soa": has("soa", without=("split",)),
            "wave_fields": has("soa", "split"),
            "wave_parity": has("split", without=("compact",)),
        },
    ),
    "wave_omp": Example(
        {"medium": ("256", "400"), "large": ("512", "200")},
        {
            "wave_omp_soa": has("soa", without=("split",)),
            "wave_omp_fields": has("soa", "split"),
            "wave_omp_parity": has("split", without=("compact",)),
        },
        threads=(1, 2),
    ),
    "lattice": Example(
        {"small": ("6", "4000"), "large": ("20", "200")},
        {"lattice_compact": by_class, "lattice_soa": elements_last, "lattice_aosoa": NOT_PROPOSED},
    ),
    "graph": Example(
        {"small": ("4000", "2000"), "large": ("400000", "60")},
        {
            "graph_split": grouped("rank share", "next"),
            "graph_hot": hot_split,
            "graph_soa": has("soa", without=("split",), structures=1),
        },
    ),
    "scan": Example(
        {"small": ("5000", "2000"), "large": ("1000000", "60")},
        {
            "scan_columns": has("soa", without=("split",)),
            "scan_hot": hot_split,
            "scan_split": grouped("date quantity", "price discount"),
        },
    ),
    "daxpy": Example(
        {"small": ("16000", "4000"), "large": ("4000000", "100")},
        {"daxpy_aos": NOT_PROPOSED, "daxpy_aosoa": NOT_PROPOSED, "daxpy_joint": NOT_PROPOSED},
    ),
    "pixels": Example(
        {"small": ("20000", "800"), "large": ("3000000", "40")},
        {
            "pixels_soa": has("soa", without=("split",)),
            "pixels_aosoa": has("aosoa", block=8),
            "pixels_pairs": grouped("r g", "b a"),
        },
    ),
    "kmeans": Example(
        {"small": ("10000", "200"), "large": ("100000", "40")},
        {
            "kmeans_soa": has("soa", without=("split",)),
            "kmeans_aosoa": has("aosoa", block=8),
            "kmeans_vectors": has("aosoa", block=8),
            "kmeans_quads": has("aosoa", block=4),
            "kmeans_split": grouped("x", "label distance"),
        },
    ),
    "nbody": Example(
        {"small": ("10000", "100"), "large": ("60000", "40")},
        {"nbody_soa": has("soa", without=("split",)), "nbody_hot": hot_split, "nbody_lanes": NOT_PROPOSED},
    ),
    "sph": Example(
        {"small": ("1400", "1000"), "large": ("60000", "40")},
        {"sph_hot": grouped("x m", "rho"), "sph_soa": has("soa", without=("split",)), "sph_view": view},
    ),
    "drift": Example(
        {"small": ("3000", "2000"), "large": ("400000", "60")},
        {
            "drift_soa": has("soa", without=("split",)),
            "drift_hot": hot_split,
            "drift_aosoa": has("aosoa", block=4),
            "drift_view": view,
        },
    ),
    "stencil": Example(
        {"small": ("140", "1500"), "large": ("600", "300")},
        {"stencil_aos": NOT_PROPOSED, "stencil_padded": NOT_PROPOSED, "stencil_transposed": NOT_PROPOSED},
    ),
    "list": Example(
        {"small": ("6000", "1000"), "large": ("100000", "40")},
        dict.fromkeys(("list_array", "list_columns", "list_hot", "list_sorted"), NOT_PROPOSED),
    ),
    "options": Example(
        {"small": ("5000", "400"), "large": ("100000", "30")},
        {
            "options_soa": has("soa", without=("split",)),
            "options_hot": hot_split,
            "options_split": grouped("spot strike years rate volatility", "call put"),
        },
    ),
    "entities": Example(
        {"small": ("4000", "1500"), "large": ("300000", "60")},
        {
            "entities_soa": has("soa", without=("split",)),
            "entities_hot": hot_split,
            "entities_split": grouped("flags", "position velocity"),
        },
    ),
}


@dataclass(frozen=True)
class Run:
    """One process: undisturbed ns of a call, the fastest of the chores beside the calls, and whether calls lay between
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

    @property
    def file(self) -> Path:
        """Where its rows are kept."""
        threads = f"-threads{self.threads}" if self.threads else ""
        return RESULTS / f"accuracy-{self.example}-{self.size}-{self.flags}{threads}.json"

    def program(self, version: str) -> Path:
        """The binary of one version."""
        return EXAMPLES / self.example / "bin" / self.flags / version

    @property
    def environment(self) -> dict[str, str]:
        """What the program and the tool are started with."""
        return {**os.environ, "OMP_NUM_THREADS": str(self.threads)} if self.threads else dict(os.environ)


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
    """A process of its own. It waits for moments in which a fixed loop of additions takes ``chore`` ns, as it does when
    nothing else uses the core."""
    command = [str(setting.program(version)), "-t", *setting.arguments]
    known = {**setting.environment, "EXAMPLE_CHORE": str(chore)}
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=known).stdout
    values = {line.split()[0]: float(line.split()[1]) for line in out.splitlines() if len(line.split()) == 2}
    return Run(values["undisturbed_ns"], values["chore_ns"], values["calm_calls"] > 0)


@dataclass(frozen=True)
class Effort:
    """At least ``rounds`` rounds of processes before and after the tool's run, none begun after ``seconds`` beyond that."""

    rounds: int
    seconds: float


def hand_rounds(setting: Setting, effort: Effort) -> list[dict[str, Run]]:
    """Every version once a round, the order rotated; at most ``MOST_ROUNDS`` rounds."""
    names = [setting.example, *CASES[setting.example].versions]
    measured: list[dict[str, Run]] = []
    chore = min(run_program(setting, setting.example, 0.0).chore for _ in range(effort.rounds))
    begun = time.monotonic()
    while len(measured) < effort.rounds or (len(measured) < MOST_ROUNDS and time.monotonic() - begun < effort.seconds):
        turn = len(measured) % len(names)
        measured.append({v: run_program(setting, v, chore) for v in [*names[turn:], *names[:turn]]})
        chore = min(chore, *(one.chore for one in measured[-1].values()))
    return measured


def undisturbed_of(rounds: list[dict[str, Run]], version: str) -> float:
    """A call in the processes that had undisturbed moments, if there are some; else in all."""
    runs = [one[version] for one in rounds]
    return undisturbed([r.ns for r in runs if r.calm] or [r.ns for r in runs])


def speedup_of(rounds: list[dict[str, Run]], original: str, version: str) -> float:
    """Original over version, each in its undisturbed processes."""
    return undisturbed_of(rounds, original) / undisturbed_of(rounds, version)


def advise(setting: Setting, keep: Path | None) -> tuple[HotspotReport, float]:
    """The tool's report on the original; its run stays in ``keep``, where that is given."""
    program = [str(setting.program(setting.example)), *setting.arguments]
    with tempfile.TemporaryDirectory() as folder:
        run = (keep or Path(folder)).absolute() / setting.file.stem.removeprefix("accuracy-")
        shutil.rmtree(run, ignore_errors=True)
        command = [sys.executable, "-m", "layout_advise", "trace", "-q", "-o", str(run), "--", *program]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, env=setting.environment)
        report = read_report(run)
        return report.hotspots[0], report.seconds.total


def predicted(hotspot: HotspotReport, match: Match, variant: str) -> CandidateReport | None:
    """The measured candidate that corresponds to a hand-written version."""
    found = [c for c in hotspot.candidates if c.speedup is not None and c.variant == variant and match(c)]
    return max(found, key=lambda c: c.speedup.median if c.speedup else 0.0, default=None)


def measure(setting: Setting, effort: Effort, keep: Path | None) -> list[dict[str, Any]]:
    """All rows of one configuration."""
    before = hand_rounds(setting, effort)
    hotspot, seconds = advise(setting, keep)
    after = hand_rounds(setting, effort)
    identity = hotspot.identity
    rows = []
    for version, match in CASES[setting.example].versions.items():
        hand = speedup_of([*before, *after], setting.example, version)
        halves = [speedup_of(half, setting.example, version) for half in (before, after)]
        candidate = predicted(hotspot, match, IN_VECTORS.get(version, "plain"))
        speedup = candidate.speedup.median if candidate and candidate.speedup else None
        rows.append(
            {
                "example": setting.example,
                "size": setting.size_text,
                "flags": setting.flags,
                "version": version,
                "hand": hand,
                "hand_range": sorted(halves),
                "processes": len(before) + len(after),
                "predicted": speedup,
                "predicted_interval": [candidate.speedup.lo, candidate.speedup.hi]
                if candidate and candidate.speedup
                else None,
                "error": speedup / hand - 1 if speedup else None,
                "candidate": candidate.id if candidate else None,
                "evidence": candidate.evidence if candidate else None,
                "identity": identity.ratio.median if identity and identity.ratio else None,
                "identity_evidence": identity.evidence if identity else None,
                "verdict": hotspot.verdict.action,
                "reason": hotspot.verdict.reason,
                "gain": hotspot.verdict.gain,
                "seconds": seconds,
            }
        )
    return rows


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


def main() -> int:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=sorted(CASES), help="these examples only")
    parser.add_argument("--size", choices=("small", "medium", "large"), help="this size only")
    parser.add_argument("--compiler", choices=sorted(SETS), help="built by this compiler only (default: all that are here)")
    parser.add_argument("--flags", choices=[flags for sets in SETS.values() for flags in sets], help="these flags only")
    parser.add_argument(
        "--rounds", type=int, default=3, help="at least so many rounds of processes before and after (default: 3)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=HAND_SECONDS,
        help="begin no further round after that long, before and after (default: %(default)s)",
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the tool's runs in this folder")
    parser.add_argument("--again", action="store_true", help="measure rows again that are there")
    arguments = parser.parse_args()
    subprocess.run(["make", "-s", "-C", str(EXAMPLES)], check=True)
    compilers = [arguments.compiler] if arguments.compiler else [name for name in SETS if shutil.which(name)]
    effort = Effort(arguments.rounds, arguments.seconds)
    RESULTS.mkdir(exist_ok=True)
    shown: list[dict[str, Any]] = []
    flags = [f for compiler in compilers for f in SETS[compiler] if (arguments.flags or f) == f]
    for setting in settings(arguments.only, arguments.size, flags):
        if not setting.program(setting.example).exists():
            print(f"{setting.example} {setting.flags}: not built here, as where clang's OpenMP is missing", file=sys.stderr)
            continue
        if arguments.again or not setting.file.exists():
            print(f"{setting.example} {setting.size_text} {setting.flags} …", file=sys.stderr)
            setting.file.write_text(json.dumps(measure(setting, effort, arguments.keep), indent=1) + "\n")
        shown += json.loads(setting.file.read_text())
    print(table(shown))
    print("", *summary(shown), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
