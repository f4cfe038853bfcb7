"""The examples: every hand-transformed version computes what the original computes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.openmp.programs import clang_has_openmp
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples"
HOTSPOTS = {
    "wave": "wave_step",
    "wave_omp": "wave_step",
    "particles": "update_pressure",
    "lattice": "multiply",
    "daxpy": "daxpy",
    "pixels": "grade",
    "graph": "gather",
    "scan": "revenue",
    "kmeans": "assign",
    "nbody": "attract",
    "sph": "density",
    "drift": "drift",
    "stencil": "diffuse",
    "list": "settle",
    "options": "price",
    "entities": "integrate",
    "lbm": "relax",
    "imaging": "diffuse",
    "kmeans32": "spread",
    "sampo": "forage",
}
SMALL = {
    "wave": "80",
    "wave_omp": "80",
    "particles": "5000",
    "lattice": "6",
    "daxpy": "16000",
    "pixels": "20000",
    "graph": "4000",
    "scan": "5000",
    "kmeans": "10000",
    "nbody": "10000",
    "sph": "1400",
    "drift": "3000",
    "stencil": "140",
    "list": "6000",
    "options": "5000",
    "entities": "4000",
    "lbm": "56",
    "imaging": "26",
    "kmeans32": "3000",
    "sampo": "8000",
}
# Not a multiple of any block, so that remainders are covered.
ODD = dict.fromkeys(HOTSPOTS, "4099") | {
    "wave": "37", "wave_omp": "37", "lattice": "4", "sph": "1021", "stencil": "121", "lbm": "53", "imaging": "19",
}  # fmt: skip


QUICK = ("wave", "particles", "lattice", "graph", "kmeans", "stencil", "list", "imaging")
CLANG = shutil.which("clang") is not None


def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples' sources in a folder whose path has a space."""
    folder = tmp_path_factory.mktemp("examples") / "all of them"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("bin"))
    return folder


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, each version of which is built, as where no clang is installed, by the first test that runs it."""
    return copied(tmp_path_factory)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All examples, built as where no clang is installed."""
    folder = copied(tmp_path_factory)
    subprocess.run(["make", "-s", "-j2", "-C", str(folder), "CLANG="], check=True)
    return folder


def built_in(sources: Path, example: str, flags: str, *versions: str) -> Path:
    """The folder with these programs of an example, or all."""
    names = versions or tuple(source.stem for source in sorted((sources / example).glob("*.c")))
    folder = Path(example, "bin", flags)
    subprocess.run(["make", "-s", "-j2", "-C", str(sources), "CLANG=", *(str(folder / n) for n in names)], check=True)
    return sources / folder


@pytest.fixture(scope="module")
def built_by_clang(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, built by clang."""
    folder = copied(tmp_path_factory)
    subprocess.run(["make", "-s", "-j2", "-C", str(folder), "clang"], check=True)
    return folder


def run(program: Path, *arguments: str) -> dict[str, str]:
    """The program's output: the first word of a line to the rest."""
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=True)
    return dict(line.split(maxsplit=1) for line in done.stdout.splitlines())


def check_versions(built: Path, example: str, flags: str) -> None:
    """Every version at two sizes: the same sum, and the same bits where the compiler rounds alike."""
    versions = sorted((built / example / "bin" / flags).iterdir())
    assert len(versions) == len(list((EXAMPLES / example).glob("*.c"))) > 3
    for size in (SMALL[example], ODD[example]):
        results = {program.name: run(program, size, "7")["checksum"].split() for program in versions}
        sums = {words[0] for words in results.values()}
        assert len(sums) == 1, results
        assert float(sums.pop()) > 0
        # gcc fuses complex products differently where it vectorises them
        if (example, flags) != ("lattice", "O3-haswell"):
            assert len({words[2] for words in results.values()}) == 1, results


@pytest.mark.parametrize(
    ("example", "flags"),
    [
        pytest.param(name, flags, marks=[] if name in QUICK and (flags == "O2" or name == "lattice") else pytest.mark.slow)
        for flags in ("O2", "O3-haswell")
        for name in HOTSPOTS
    ],
)
def test_versions_agree(sources: Path, example: str, flags: str) -> None:
    built_in(sources, example, flags)
    check_versions(sources, example, flags)


@pytest.mark.slow
@pytest.mark.skipif(not CLANG, reason="no clang")
@pytest.mark.parametrize("flags", ["clang-O2", "clang-O3-haswell"])
@pytest.mark.parametrize("example", HOTSPOTS)
def test_versions_agree_by_clang(built_by_clang: Path, example: str, flags: str) -> None:
    if example == "wave_omp" and not clang_has_openmp():
        pytest.skip("clang's OpenMP is not installed")
    check_versions(built_by_clang, example, flags)


@pytest.mark.slow
def test_make_needs_no_clang(built: Path) -> None:
    assert all(
        list(built.glob(f"{example}/bin/{flags}/{example}")) for example in HOTSPOTS for flags in ("O2", "O3-haswell")
    )
    assert not list(built.glob("*/bin/clang*"))


def test_every_example_is_tested() -> None:
    """Those of ``opencl`` are kernels, which have tests of their own."""
    assert {source.parent.name for source in EXAMPLES.glob("*/*.c")} - {"opencl"} == HOTSPOTS.keys() == SMALL.keys()


@pytest.mark.parametrize("example", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in HOTSPOTS])
def test_hotspot_is_a_function_that_changes_the_data(sources: Path, example: str) -> None:
    program = built_in(sources, example, "O3-haswell", example) / example
    symbols = subprocess.run(["nm", str(program)], capture_output=True, text=True, check=True).stdout
    assert f" T {HOTSPOTS[example]}\n" in symbols
    assert run(program, ODD[example], "1")["checksum"] != run(program, ODD[example], "2")["checksum"]


def test_options(sources: Path) -> None:
    program = built_in(sources, "daxpy", "O2", "daxpy") / "daxpy"
    times = run(program, "-t", "1000", "5")
    assert 0 < float(times["undisturbed_ns"]) <= float(times["median_ns"])
    assert "median_ns" not in run(program, "1000", "5")
    for bad in (["0"], ["many"], ["1", "2", "3", "4"], ["9999999999"]):
        assert subprocess.run([str(program), *bad], capture_output=True, check=False).returncode == 2
