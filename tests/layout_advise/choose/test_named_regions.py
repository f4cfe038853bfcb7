"""What a function's name stands for: parallel regions where all threads spend more time in these than it does by itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from layout_advise.choose.named_regions import named_regions
from layout_advise.choose.profile import Profiled, Sampled
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.program.openmp_regions import bodies_started
from layout_advise.tracer.sampling.call_chains import Chain
from layout_advise.tracer.sampling.probe import SampleRun
from layout_advise.tracer.trace.trace import Mapping
from tests.support.openmp.programs import needs_libomp

PROGRAM = """\
double cells[4096], sums[4096];
__attribute__((noinline)) void deeper(long n)
{
#pragma omp parallel for
    for (long i = 0; i < n; i++) sums[i] += cells[i];
}
__attribute__((noinline)) void outer(long n)
{
#pragma omp parallel for
    for (long i = 0; i < n; i++) cells[i] *= 1.5;
    deeper(n);
}
__attribute__((noinline)) void alone(long n)
{
    for (long i = 0; i < n; i++) cells[i] += 1;
}
int main(void)
{
    alone(4096);
    outer(4096);
    return 0;
}
"""
RUNTIME = 0x7F0000000000


def built(folder: Path, *command: str) -> ElfBinary:
    (folder / "main.c").write_text(PROGRAM)
    subprocess.run([*command, "-g", "-fopenmp", "-o", folder / "main", folder / "main.c"], check=True)
    return ElfBinary.open_module(folder / "main")


def body_of(main: ElfBinary, name: str) -> str:
    """The name that the compiler gave to the body of the region in ``name``."""
    return next(f.name for f in main.functions if f.name.startswith((f"{name}._omp_fn", f"{name}.omp_outlined")))


@pytest.mark.parametrize(
    "command",
    [
        ("gcc", "-O2"),
        ("gcc", "-O0"),
        ("gcc", "-O2", "-fno-pie", "-no-pie"),
        pytest.param(("clang", "-O2"), marks=needs_libomp),
        pytest.param(("clang", "-O2", "-fno-pie", "-no-pie"), marks=needs_libomp),
    ],
    ids=" ".join,
)
def test_the_regions_that_a_function_starts_and_those_of_what_it_calls(command: tuple[str, ...], tmp_path: Path) -> None:
    main = built(tmp_path, *command)
    bodies = [f.name for f in main.functions if "omp_fn" in f.name or "omp_outlined" in f.name]
    assert len(bodies) == 2
    assert sorted(f.name for f in bodies_started(main, main.find("outer"))) == sorted(bodies)
    (own,) = bodies_started(main, main.find("deeper"))
    assert own.name in bodies
    assert bodies_started(main, main.find("alone")) == ()


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> ElfBinary:
    return built(tmp_path_factory.mktemp("named"), "gcc", "-O2")


def profiled(main: ElfBinary, name: str, chains: dict[tuple[str, ...], int]) -> Profiled:
    """The function with samples in these functions, each with its callers; ``""`` stands for the runtime."""
    mappings = (
        Mapping(0, 1 << 20, "r-xp", 0, str(main.path)),
        Mapping(RUNTIME, RUNTIME + 4096, "r-xp", 0, "/usr/lib/x86_64-linux-gnu/libgomp.so.1"),
    )
    places: list[Chain] = []
    for names, count in chains.items():
        places += [tuple(main.find(one).start + 1 if one else RUNTIME for one in names)] * count
    run = SampleRun(0, None, 1.0, np.array([c[0] for c in places], np.uint64), mappings)
    seen = Sampled(run, Modules(mappings, main), tuple(places), ())
    return seen.profiled((), main, main.find(name))


def test_parallel_regions_stand_for_a_function_that_only_starts_them(main: ElfBinary) -> None:
    first, second = body_of(main, "outer"), body_of(main, "deeper")
    # threads of the team have no caller in the program; the first one waits in the runtime for the others
    chains = {(first,): 30, (second, "", "deeper", "outer"): 40, ("", "outer"): 200, ("outer",): 5, ("alone",): 50}
    found = named_regions(profiled(main, "outer", chains), main)
    assert [one.function.name for one in found] == [second, first]
    assert all(one.threaded for one in found)


def test_a_region_with_few_samples_is_none(main: ElfBinary) -> None:
    first, second = body_of(main, "outer"), body_of(main, "deeper")
    found = named_regions(profiled(main, "outer", {(first,): 300, (second,): 3}), main)
    assert [one.function.name for one in found] == [first]


def test_a_function_with_more_time_of_its_own_stands_for_itself(main: ElfBinary) -> None:
    named = profiled(main, "outer", {(body_of(main, "outer"),): 40, ("outer",): 30, ("alone", "outer"): 11})
    assert named_regions(named, main) == (named,)


def test_a_function_without_parallel_regions_stands_for_itself(main: ElfBinary) -> None:
    named = profiled(main, "alone", {("alone",): 10})
    assert named_regions(named, main) == (named,)


SPECIALISED = """\
double cells[4096];
__attribute__((noinline)) double each(double *x, long n, int times)
{
    double sum = 0;
    for (long i = 0; i < n; i++) sum += x[i] * times + (times > 3 ? 1.0 / x[i] : 0.0);
    return sum;
}
int main(int argc, char **argv)
{
    double sum = 0;
    for (int k = 0; k < 1000 * argc; k++) sum += each(cells, 4096, 1);
    return (int)sum;
}
"""


def test_copies_with_more_time_stand_for_a_function(tmp_path: Path) -> None:
    """As others may call it, `each` stays beside its copy and is never entered: "the hotspot is never called" (kmeans32)."""
    (tmp_path / "main.c").write_text(SPECIALISED)
    subprocess.run(["gcc", "-O3", "-o", tmp_path / "main", tmp_path / "main.c"], check=True)
    main = ElfBinary.open_module(tmp_path / "main")
    (copy,) = (f.name for f in main.functions if f.parent == "each" and f.clone is not None)
    (found,) = named_regions(profiled(main, "each", {(copy, "main"): 30, ("each",): 2}), main)
    assert (found.function.name, found.share) == (copy, 30 / 32)
    others: list[tuple[str, dict[tuple[str, ...], int]]] = [
        ("each", {(copy,): 2, ("each",): 30}), ("each", {("main",): 9}), (copy, {("each",): 30}),
    ]  # fmt: skip
    for name, chains in others:
        named = profiled(main, name, chains)
        assert named_regions(named, main) == (named,)
