"""CPU time of other processes, which no sample sees: shares are parts of all, and what works elsewhere is not studied."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import profile, with_outside
from layout_advise.config import Settings
from layout_advise.errors import ProgramError
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.hotspots import OUTSIDE

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
volatile double sink;
__attribute__((noipa)) double work(long n)
{
    double s = 0;
    for (long i = 0; i < n; i++)
        s += 1.0 / (i + 1);
    return s;
}
static void works(int times)
{
    for (int k = 0; k < times; k++)
        sink += work(1000000);
}
int main(int argc, char **argv)
{
    works(argc > 2 ? atoi(argv[2]) : 0);
    if (!strcmp(argv[1], "child")) {
        if (!fork()) {
            works(atoi(argv[3]));
            _exit(0);
        }
        wait(NULL);
    }
    if (!strcmp(argv[1], "exec"))
        execl(argv[0], argv[0], "end", argv[3], (char *)0);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("elsewhere") / "main"
    built.with_suffix(".c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O2", "-o", built, built.with_suffix(".c")], check=True)
    return built


def share(program: Path, folder: Path, *words: str, hotspot: str | None = "work") -> float:
    settings = Settings((str(program), *words), folder / "run", hotspot=hotspot, timeout=120)
    found = profile(settings, ElfBinary.open_module(program), None, folder / "output")
    assert found.function.name == "work"
    assert sum(hot.share for hot in found.ranking) == pytest.approx(1.0)
    return found.share


def test_a_share_is_one_of_all_processes(program: Path, tmp_path: Path) -> None:
    assert share(program, tmp_path, "child", "600", "0", hotspot=None) > 0.85
    assert 0.45 < share(program, tmp_path, "child", "600", "400", hotspot=None) < 0.75


def test_what_is_named_is_studied_with_its_share(program: Path, tmp_path: Path) -> None:
    assert 0.1 < share(program, tmp_path, "exec", "300", "900") < 0.4


@pytest.mark.parametrize("how", ["child", "exec"])
def test_what_works_elsewhere_is_told(how: str, program: Path, tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"it starts another program or process, in which most of the [0-9.]+ s of CPU"):
        share(program, tmp_path, how, "200", "900", hotspot=None)


def test_little_time_of_others_counts_as_none() -> None:
    chains = [(1,)] * 100
    assert with_outside(chains, CHOOSE.least_outside / 2) == chains
    assert with_outside([], 0.5) == []
    assert with_outside(chains, 0.2) == [*chains, *[(OUTSIDE,)] * 25]


def test_of_too_many_samples_some_are_looked_at() -> None:
    found = with_outside([(k + 1,) for k in range(8000)], 0.99)
    assert len(found) <= 1.5 * CHOOSE.most_chains
    assert sum(chain == (OUTSIDE,) for chain in found) / len(found) == pytest.approx(0.99, abs=0.001)
