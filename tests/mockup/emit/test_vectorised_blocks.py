"""What the compiler makes of a new layout is what it makes of a source in it: neither less, nor more."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from layout_advise.build.mockups import make_all
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.mockup.emit import emit
from layout_advise.mockup.emit.frame import mixes_products
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.rewrite.reroll import reroll
from layout_advise.mockup.run.compilers import GCC
from layout_advise.mockup.timing.variants import Variant
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.recipes import Code, Recipe
from layout_advise.propose.source import Source
from layout_advise.tracer.trace.trace import Trace
from tests.support.mockups.native import Native, candidate, relayout, traced

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
    return Case(reroll(lifted, Evidence.of(trace, (structure,))), trace, structure)


def built(one: Case, layout: Candidate, where: Path, promise: str = "plain") -> tuple[tuple[str, ...], str]:
    """The flags it was compiled with, and its code."""
    recipe = Recipe(Variant("c1", "restrict" if promise == "restrict" else "plain"), layout, checked=False)
    code = Code(one.lifted, one.lifted)
    source = Source(code, one.lifted, one.trace, (one.structure,), Compiled("gcc", FLAGS))
    (made,) = make_all([recipe], source, source.compiler, where / promise).values()
    assert made.path is not None, made.reason
    code_text = subprocess.run(["objdump", "-d", str(made.path)], capture_output=True, text=True, check=True).stdout
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
    assert GCC.more_checks[0] not in flags
    assert "vmulpd" not in code
    _, promised = built(one, layout, tmp_path, "restrict")
    assert "vmulpd" in promised


@pytest.mark.parametrize(("kind", "pairs"), [("soa", 1), ("compact", 0)])
def test_rows_of_one_array_are_one_array(kind: str, pairs: int, tmp_path: Path) -> None:
    one = case(FIVE_POINTS, 4, 2, tmp_path)
    layout = candidate(relayout(one.structure, kind))
    assert emit(one.lifted, layout, one.trace, (one.structure,)).overlaps == pairs
    flags, _ = built(one, layout, tmp_path)
    assert GCC.more_checks[0] in flags


MOVED = """
struct entity { unsigned flags; float x, vx, y, vy; int unused; };
void run(struct entity *e, long n, long sweeps, float dt)
{
    for (long s = 0; s < sweeps; s++) {
        for (long i = 0; i < n; i++) {
            if (!(e[i].flags & 1))
                continue;
            const float x = e[i].x + dt * e[i].vx, y = e[i].y + dt * e[i].vy;
            e[i].vx = x > 1.0f ? -e[i].vx : e[i].vx;
            e[i].x = x;
            e[i].vy = y > 1.0f ? -e[i].vy : e[i].vy;
            e[i].y = y;
        }
        __asm__ volatile("" ::: "memory");
    }
}
"""
TURNED = """
struct z { double re, im; };
void run(struct z *p, long n) { for (long i = 0; i < n; i++) {
    const double re = p[i].re * 0.6 - p[i].im * 0.8, im = p[i].re * 0.8 + p[i].im * 0.6; p[i].re = re; p[i].im = im; } }
"""


def test_products_under_a_condition_become_vectors_with_masks(tmp_path: Path) -> None:
    """entities with AVX-512: 5.5 times as fast by hand. gcc took the barrier that keeps products from being fused for
    something that may trap, and had no checks left for arrays whose `restrict` it had forgotten."""
    native = Native(MOVED, "run", tmp_path, ("-O2",))
    lifted = native.lifted()
    work = np.zeros((64, 6), dtype=np.float32)
    work.view(np.uint32)[::2, 0] = 1
    trace = traced(lifted, tmp_path, (work.ctypes.data, len(work), 2), (0.5,))
    fields = tuple(
        Field(n, 4 * k, 4, "float" if k else "unsigned", 1, 1) for k, n in enumerate(("flags", "x", "vx", "y", "vy"))
    )
    structure = Structure("s0", "e", work.ctypes.data, work.nbytes, (Dim(64, 24),), fields, (), work.ctypes.data)
    recipe = Recipe(Variant("c1", "restrict"), candidate(relayout(structure, "soa")), checked=False)
    wide = Compiled("gcc", ("-O3", "-march=skylake-avx512", "-ffp-contract=off"))
    source = Source(Code(lifted, lifted), lifted, trace, (structure,), wide)
    (made,) = make_all([recipe], source, source.compiler, tmp_path / "made").values()
    assert made.path is not None, made.reason
    code = subprocess.run(["objdump", "-d", str(made.path)], capture_output=True, text=True, check=True).stdout
    assert "{%k" in code


@pytest.mark.parametrize(("source", "mixed"), [(DRIFT, False), (TURNED, True)])
def test_only_mixed_products_are_kept_from_being_fused(source: str, mixed: bool, tmp_path: Path) -> None:
    lifted = Native(source, "run", tmp_path, ("-O2",)).lifted()
    assert mixes_products(lifted) is mixed
