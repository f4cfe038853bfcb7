"""What it costs where code lies: ``python benchmarks/placement.py --only entities``.

Each version of an example is built several times with nothing but some one-byte nops before its functions, which moves the
loops and branches to other addresses; the builds are run in rotated order. What the times of a version differ by has nothing
to do with its layout (``docs/decisions/0037``). One row a version: the least and greatest time of a call, and the speedup
over the original from the unluckiest pair of builds to the luckiest.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import CASES

from layout_advise.mockup.timing.statistics import undisturbed

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SERIAL = sorted(name for name, example in CASES.items() if not example.threads)
SETS = {"O2": ("-O2",), "O3-haswell": ("-O3", "-march=haswell")}


def build(example: str, version: str, flags: str, nops: int, folder: Path) -> Path:
    """A version with so many nops before each function."""
    out = folder / f"{version}-{nops}"
    extra = ("-fno-math-errno",) if example == "nbody" else ()
    moved = ("-falign-functions=64", f"-fpatchable-function-entry={nops}")
    source = EXAMPLES / example / f"{version}.c"
    subprocess.run(["gcc", "-std=c11", *extra, *SETS[flags], *moved, "-o", str(out), str(source), "-lm"], check=True)
    return out


def call_ns(program: Path, arguments: tuple[str, ...]) -> float:
    """The undisturbed time of a call in one process."""
    lines = subprocess.run([str(program), "-t", *arguments], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("undisturbed_ns"))


def measure(example: str, size: str, flags: str, nops: range, rounds: int) -> dict[str, list[float]]:
    """By version the times of a call of its builds, in ns."""
    versions = [example, *CASES[example].versions]
    with tempfile.TemporaryDirectory() as folder:
        built = [(v, build(example, v, flags, n, Path(folder))) for n in nops for v in versions]
        runs: dict[Path, list[float]] = {program: [] for _, program in built}
        for turn in range(rounds):
            for _, program in built[turn:] + built[:turn]:
                runs[program].append(call_ns(program, CASES[example].sizes[size]))
        return {v: [undisturbed(runs[program]) for name, program in built if name == v] for v in versions}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="what it costs where the code of the examples' versions lies")
    parser.add_argument("--only", action="append", choices=SERIAL, help="these examples (default: entities and scan)")
    parser.add_argument("--size", default="small", help="which size (default: small)")
    parser.add_argument("--flags", choices=sorted(SETS), default="O2", help="optimisation (default: O2)")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each build (default: 5)")
    options = parser.parse_args()
    print("| example | flags | version | a call, µs | speedup over the original |\n|---|---|---|---|---|")
    for example in options.only or ["entities", "scan"]:
        times = measure(example, options.size, options.flags, range(0, 64, 8), options.rounds)
        own = times[example]
        for version, found in times.items():
            speedup = f"{min(own) / max(found):.2f} to {max(own) / min(found):.2f}"
            print(
                f"| {example} | {options.flags} | {version} | {min(found) / 1e3:.1f} to {max(found) / 1e3:.1f} | {speedup} |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
