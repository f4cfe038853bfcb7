"""How many functions with a floating-point loop the lifter takes in real libraries, and whether what came out is right.

    python benchmarks/lift_coverage.py [--cache DIR] [--sample 60] [--seeds 800] [LIBRARY...]

Debian packages are downloaded and unpacked (not installed) into the cache folder. Of each library functions are drawn at
random (from a fixed seed) until ``--sample`` with a floating-point loop are found; these are lifted, and what compiles is
run on random registers and memory against the original machine code (``tests/support/lifting/lift_runner.c``). One JSON
file a library is kept in ``benchmarks/results/lift``: a library that has one is not done again (``--again``). Prints the
tables of RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from layout_advise.commands.lifting.lift_survey import TooLong, time_limit
from layout_advise.errors import BinaryError, NotLiftedError
from layout_advise.mockup.run.build import build
from layout_advise.mockup.run.survey import has_float_loop, lift_function, source_of, surveyed
from layout_advise.tracer.program.symbols import Function
from tests.support.lifting.callees import arguments_of, opened
from tests.support.lifting.runner import (
    Job,
    Trial,
    build_runner,
    constants_of,
    load_base,
    marks_of,
    results_of,
    run_jobs,
)

RESULTS = Path(__file__).parent / "results" / "lift"
SECONDS = 30.0
ENOUGH = 12
"""Random states that agree and reached a loop, after which a function is done."""
FLAGS = ("-O1",)
REPEATS = 5
"""How often a state at which a function differs is tried again."""
_PIE = 0x08000000  # DF_1_PIE


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library of a Debian package; ``needs`` are packages of libraries that it is linked with."""

    package: str
    file: str
    language: str
    needs: tuple[str, ...] = ()


FORTRAN = ("libgfortran5", "libquadmath0", "libblas3")
SPARSE = ("libsuitesparseconfig5", "libamd2", "libcolamd2", "libcamd2", "libccolamd2", "libmetis5", "libgomp1")
LIBRARIES = (
    Library("libblas3", "blas/libblas.so.3", "Fortran", FORTRAN),
    Library("liblapack3", "lapack/liblapack.so.3", "Fortran", FORTRAN),
    Library("libarpack2", "libarpack.so.2", "Fortran", (*FORTRAN, "liblapack3")),
    Library("libminpack1", "libminpack.so.1", "Fortran", FORTRAN),
    Library("libslicot0", "libslicot.so.0", "Fortran", (*FORTRAN, "liblapack3")),
    Library("libgslcblas0", "libgslcblas.so.0", "C"),
    Library("libgsl27", "libgsl.so.27", "C", ("libgslcblas0",)),
    Library("libfftw3-double3", "libfftw3.so.3", "C"),
    Library("libglpk40", "libglpk.so.40", "C", (*SPARSE, "libgmp10", "libltdl7", "zlib1g")),
    Library("libsuperlu5", "libsuperlu.so.5", "C", FORTRAN),
    Library("libcholmod3", "libcholmod.so.3", "C", (*SPARSE, *FORTRAN, "liblapack3")),
    Library("libqhull-r8.0", "libqhull_r.so.8.0", "C"),
    Library("libvorbis0a", "libvorbis.so.0", "C", ("libogg0",)),
    Library("libopus0", "libopus.so.0", "C"),
    Library("libsoxr0", "libsoxr.so.0", "C", ("libgomp1",)),
    Library("libspeexdsp1", "libspeexdsp.so.1", "C"),
    Library("liberfa1", "liberfa.so.1", "C"),
    Library("libcminpack1", "libcminpack.so.1", "C", FORTRAN),
    Library("libnlopt0", "libnlopt.so.0", "C++"),
    Library("libbullet3.24", "libBulletCollision.so.3.24", "C++"),
    Library("libsvm3", "libsvm.so.3", "C++"),
    Library("dcraw", "../../bin/dcraw", "C", ("liblcms2-2", "libjpeg62-turbo")),
    Library("libode8", "libode.so.8", "C++", ("libccd2",)),
)


def unpack(library: Library, cache: Path) -> tuple[Path, list[Path]]:
    """The library's file, downloaded and unpacked where the cache has it not yet, and where to search for others."""
    root = cache / "root"
    folder = root / "usr" / "lib" / "x86_64-linux-gnu"
    for package in (library.package, *library.needs):
        done = cache / f"{package}.done"
        if done.exists():
            continue
        debs = cache / "debs" / package
        debs.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "-qq", "download", package], cwd=debs, check=True, timeout=300, stderr=subprocess.DEVNULL)
        for deb in debs.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(deb), str(root)], check=True, timeout=300)
        done.touch()
    search = [folder, folder / "blas", folder / "lapack", root / "lib" / "x86_64-linux-gnu"]
    return as_library((folder / library.file).resolve()), [s for s in search if s.is_dir()]


def as_library(path: Path) -> Path:
    """The file itself, or of a position-independent program a copy that the dynamic loader takes for a library: without the
    one bit that says what it is."""
    with path.open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        tags = list(dynamic.iter_tags()) if isinstance(dynamic, DynamicSection) else []
    flags = next((k for k, tag in enumerate(tags) if tag.entry.d_tag == "DT_FLAGS_1"), None)
    if dynamic is None or flags is None or not tags[flags].entry.d_val & _PIE:
        return path
    code = bytearray(path.read_bytes())
    struct.pack_into("<Q", code, dynamic["sh_offset"] + 16 * flags + 8, tags[flags].entry.d_val & ~_PIE)
    copy = path.with_suffix(".so")
    copy.write_bytes(code)
    return copy


def linked(path: Path, search: Sequence[Path]) -> list[Path]:
    """The unpacked libraries that the file is linked with, directly."""
    with path.open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        tags = list(dynamic.iter_tags("DT_NEEDED")) if isinstance(dynamic, DynamicSection) else []
        names = [str(getattr(tag, "needed")) for tag in tags]  # noqa: B009 - pyelftools makes it at run time
    return [folder / name for name in names for folder in search if (folder / name).exists()]


def looping(path: Path, sample: int) -> tuple[list[Function], int]:
    """So many functions of the file with a floating-point loop, drawn at random from a fixed seed, and how many functions
    were looked at to find them."""
    binary = opened(path)
    functions = list(surveyed(binary))
    random.Random(path.name).shuffle(functions)
    found: list[Function] = []
    looked = 0
    while looked < len(functions) and len(found) < sample:
        with suppress(BinaryError):
            if has_float_loop(binary.region(functions[looked], 0)):
                found.append(functions[looked])
        looked += 1
    return found, looked


def attempt(
    path: Path, function: Function, base: int, folder: Path, others: tuple[Path, ...], by_reference: bool
) -> tuple[Job | None, str]:
    """Lift and compile one function at its run-time address: the job to run, or what stopped it."""
    binary = opened(path)
    try:
        with time_limit(SECONDS):
            region, lifted = lift_function(binary, function, base)
            built = build(source_of(lifted), folder / f"{function.start:x}.so", "gcc", FLAGS)
    except NotLiftedError as error:
        word = error.instruction.split()[0] if error.reason in ("x87", "no rule for this instruction") else ""
        return None, f"{error.reason} {word}".strip()
    except TooLong:
        return None, f"takes longer than {SECONDS:.0f} s"
    except Exception as error:
        return None, f"failure of the lifter itself: {type(error).__name__}: {error}"
    if built.path is None:
        return None, f"does not compile: {built.reason}"
    name = f"{function.name}@{function.start:x}"
    state = arguments_of(lifted, (path, *others), base, by_reference=by_reference)
    results, marks, constants = results_of(lifted), marks_of(region), constants_of(region)
    return Job(name, function.start + base, results, built.path, marks, constants, state, ENOUGH), ""


def study(library: Library, cache: Path, sample: int, seeds: int, jobs: int) -> dict[str, Any]:
    """Everything about one library, as JSON."""
    path, search = unpack(library, cache)
    folder = cache / "work" / path.name
    folder.mkdir(parents=True, exist_ok=True)
    runner = build_runner(cache)
    base = load_base(runner, path, search)
    chosen, looked = looping(path, sample)
    with ProcessPoolExecutor(jobs) as pool:
        size = len(chosen)
        others = tuple(linked(path, search))
        fixed = ([base] * size, [folder] * size, [others] * size, [library.language == "Fortran"] * size)
        made = list(pool.map(attempt, [path] * size, chosen, *fixed))
    ready = [job for job, _ in made if job is not None]
    trials = run_jobs(runner, path, ready, folder, seeds=seeds, search=search)
    for _ in range(REPEATS):
        doubtful = [job for job in ready if any(t.verdict == "differs" for t in trials[job.name])]
        if doubtful:
            again = run_jobs(runner, path, doubtful, folder, seeds=seeds, search=search)
            trials = {**trials, **{name: repeated(trials[name], found) for name, found in again.items()}}
    return {
        **asdict(library),
        "library": path.name,
        "functions": len(surveyed(opened(path))),
        "looked": looked,
        "seeds": seeds,
        "sample": len(chosen),
        "lifted": len(ready),
        "stops": {f"{f.name}@{f.start:x}": why for f, (_, why) in zip(chosen, made, strict=True) if why},
        "executed": {name: _summary(found) for name, found in trials.items()},
    }


def repeated(first: Sequence[Trial], again: Sequence[Trial]) -> tuple[Trial, ...]:
    """``first``, but what differs as it came out ``again`` from the same state. A lifter that is wrong is wrong each time; a
    function that asks for the time, or reads memory that was never written, ends otherwise from time to time."""
    second = {t.seed: t for t in again}
    return tuple(second.get(t.seed, t) if t.verdict == "differs" else t for t in first)


def _summary(trials: Sequence[Trial]) -> dict[str, Any]:
    good = [t for t in trials if t.verdict in ("agrees", "same but for NaN")]
    return {
        "agree": sum(t.verdict == "agrees" for t in trials),
        "nan": sum(t.verdict == "same but for NaN" for t in trials),
        "discarded": sum(t.verdict == "discarded" for t in trials),
        "loop": sum(t.reached > 0 for t in good),
        "changed": max((t.changed for t in good), default=0),
        "differs": [asdict(t) for t in trials if t.verdict == "differs"],
    }


def tables(found: Sequence[dict[str, Any]]) -> str:
    """The tables of RESULTS.md."""
    lines = [
        "| library | language | functions | looked at | float loop | lifted | share | executed | loop reached | differ |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    sums: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for one in found:
        runs = one["executed"].values()
        ran = sum(1 for r in runs if r["agree"] or r["nan"] or r["differs"])
        loop = sum(1 for r in runs if r["loop"] and not r["differs"])
        differ = sum(1 for r in runs if r["differs"])
        row = {
            "functions": one["functions"],
            "looked": one["looked"],
            "sample": one["sample"],
            "lifted": one["lifted"],
            "ran": ran,
            "loop": loop,
        }
        sums.update({**row, "differ": differ})
        reasons.update(_kind(why) for why in one["stops"].values())
        lines.append(f"| {one['library']} | {one['language']} | {_cells(row)} | {differ} |")
    lines += [f"| together | | {_cells(sums)} | {sums['differ']} |", "", "| functions | what stops them |", "|---|---|"]
    lines += [f"| {count} | {reason} |" for reason, count in reasons.most_common()]
    return "\n".join(lines)


def _cells(row: dict[str, int]) -> str:
    share = 100 * row["lifted"] / max(1, row["sample"])
    left = " | ".join(str(row[key]) for key in ("functions", "looked", "sample", "lifted"))
    return f"{left} | {share:.0f} % | {row['ran']} | {row['loop']}"


def _kind(why: str) -> str:
    return "uses a register that a call does not keep" if why.startswith("uses a register that the call") else why


def main() -> None:
    """Studies the libraries named on the command line (all without) and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help="packages to study (default: all)")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "layout-advise" / "lift")
    parser.add_argument("--sample", type=int, default=60, help="functions of each library (default 60)")
    parser.add_argument("--seeds", type=int, default=800, help="random states a function at most (default 800)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="do libraries again that have results")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    found = []
    for library in LIBRARIES:
        if arguments.libraries and library.package not in arguments.libraries:
            continue
        kept = RESULTS / f"{library.package}.json"
        if arguments.again or not kept.exists():
            print(library.package, file=sys.stderr)
            one = study(library, arguments.cache.resolve(), arguments.sample, arguments.seeds, arguments.jobs)
            kept.write_text(json.dumps(one, indent=1) + "\n")
        found.append(json.loads(kept.read_text()))
    print(tables(found))


if __name__ == "__main__":
    main()
