"""What the compiler makes of a new layout is what it makes of a source in it: neither less, nor more."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.structure import Candidate, Dim, Field, Structure
from layout_advise.mockup.emit import emit
from layout_advise.mockup.lifted import Lifted
from layout_advise.mockup.reroll import reroll
from layout_advise.stages.mockups import MORE_CHECKS, Code, Compiled, Recipe, make_all
from layout_advise.tracer.trace import Trace
from tests.mockup_native import Native, candidate, relayout, traced

FLAGS = ("-O3", "-march=haswell", "-ffp-contract=off")
# gcc unrolls it for two particles and takes their factors in different orders
DRIFT = """
struct particle { double x, y, z, vx, vy, vz, unused[4]; };
void run(struct particle *p, long n, long sweeps, double dt)
{
    for (long s = 0; s < sweeps; s++) {
        for (long i = 0; i < n; i++) {
            p[i].x += dt * p[i].vx;
            p[i].y += dt * p[i].vy;
            p[i].z += dt * p[i].vz;
        }
        __asm__ volatile("" ::: "memory");
    }
}
"""
FIVE_POINTS = """
struct cell { double now, next, unused[2]; };
void run(struct cell *c, long n, long sweeps, double k)
{
    for (long s = 0; s < sweeps; s++)
        for (long i = 16; i < n - 16; i++)
            c[i].next = c[i].now + k * (c[i - 16].now + c[i + 16].now + c[i - 1].now + c[i + 1].now);
}
"""


@dataclass(frozen=True)
class Case:
    lifted: Lifted
    trace: Trace
    structure: Structure


def case(source: str, words: int, fields: int, where: Path) -> Case:
    native = Native(source, "run", where, FLAGS)
    lifted = native.lifted()
    work = np.ones((64, words))
    trace = traced(lifted, where, (work.ctypes.data, len(work), 2), (0.5,))
    known = tuple(Field(f"f{k}", 8 * k, 8, "double", 1, 1) for k in range(fields))
    dims = (Dim(len(work), 8 * words),)
    structure = Structure("s0", "p", work.ctypes.data, work.nbytes, dims, known, (), work.ctypes.data)
    return Case(reroll(lifted, trace, (structure,)), trace, structure)


def built(one: Case, layout: Candidate, where: Path, variant: str = "plain") -> tuple[tuple[str, ...], str]:
    """The flags it was compiled with, and its code."""
    recipe = Recipe("c1", layout, "restrict" if variant == "restrict" else "plain", checked=False)
    code = Code(one.lifted, one.lifted)
    (made,) = make_all([recipe], code, one.trace, (one.structure,), Compiled("gcc", FLAGS), where / variant)
    assert made.mockup is not None, made.reason
    code_text = subprocess.run(["objdump", "-d", str(made.mockup)], capture_output=True, text=True, check=True).stdout
    return made.flags, code_text


def test_blocks_become_vectors(tmp_path: Path) -> None:
    """3.2 times as fast by hand; 1.5 while the block's number was shifted out of the element's."""
    one = case(DRIFT, 10, 6, tmp_path)
    _, code = built(one, candidate(relayout(one.structure, "blocks", 4)), tmp_path)
    assert "vmulpd" in code
    assert "%ymm" in code


def test_arrays_that_a_source_could_not_check_are_not_checked(tmp_path: Path) -> None:
    """gcc gives up where more than ten pairs of arrays may overlap; a mock-up must not be luckier than the source."""
    one = case(DRIFT, 10, 6, tmp_path)
    layout = candidate(relayout(one.structure, "soa"))
    assert emit(one.lifted, layout, one.trace, (one.structure,)).overlaps == 12
    flags, code = built(one, layout, tmp_path)
    assert MORE_CHECKS[0] not in flags
    assert "vmulpd" not in code
    _, promised = built(one, layout, tmp_path, "restrict")
    assert "vmulpd" in promised


@pytest.mark.parametrize(("kind", "pairs"), [("soa", 1), ("compact", 0)])
def test_rows_of_one_array_are_one_array(kind: str, pairs: int, tmp_path: Path) -> None:
    one = case(FIVE_POINTS, 4, 2, tmp_path)
    layout = candidate(relayout(one.structure, kind))
    assert emit(one.lifted, layout, one.trace, (one.structure,)).overlaps == pairs
    flags, _ = built(one, layout, tmp_path)
    assert MORE_CHECKS[0] in flags
