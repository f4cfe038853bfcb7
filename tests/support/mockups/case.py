"""A compiled function, its memory and structures, and whether its mock-ups in other layouts leave the same bytes."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.mockup.evidence.check_records import check_records
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.rewrite.passes import run_passes
from layout_advise.mockup.rewrite.reroll import reroll
from layout_advise.mockup.run.load import MockupCall
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import Native, run_mockup, traced

FLAGS = {"O2": ("-O2",), "O3-avx2": ("-O3", "-march=haswell")}

PARTICLES = """
struct p { double x, y, z, vx, vy, vz, m, q, s, t; };
void move(struct p *a, long n, double dt) {
    for (long i = 0; i < n; i++) { a[i].x += a[i].vx * dt; a[i].y += a[i].vy * dt; a[i].z += a[i].vz * dt; }
}"""


def f64_fields(*named: tuple[str, int]) -> tuple[Field, ...]:
    return tuple(Field(name, offset, 8, "double", 1, 1) for name, offset in named)


class Case:
    """A function, its memory and its structures; every run starts from the same bytes at the same addresses."""

    def __init__(
        self,
        source: str,
        symbol: str,
        flags: tuple[str, ...],
        where: Path,
        compiler: str = "gcc",
        made: type[Native] = Native,
    ) -> None:
        self.where = where
        self.flags = flags
        self.native = made(source, symbol, where, flags, compiler)
        self.lifted = self.native.lifted()
        self.arrays: list[np.ndarray] = []
        self.integers: list[int] = []
        self.floats: list[float] = []
        self.structures: tuple[Structure, ...] = ()

    def prepare(self) -> None:
        self.before = [a.copy() for a in self.arrays]
        self.trace = traced(self.lifted, self.where, self.integers, self.floats)
        self.restore()
        arguments = [ctypes.c_int64(i) for i in self.integers] + [ctypes.c_double(f) for f in self.floats]
        self.native.function(*arguments)
        self.expected = self.restore()

    def restore(self) -> list[bytes]:
        """The arrays' bytes; puts them back to the start."""
        found = [a.tobytes() for a in self.arrays]
        for array, before in zip(self.arrays, self.before, strict=True):
            array[...] = before
        return found

    def run(self, chosen: Candidate | None, name: str, **options: Any) -> tuple[list[bytes], MockupCall]:
        source = emit_mockup(self.lifted, chosen, self.trace, self.structures, **options)
        flags = ("-O0",) if options.get("check") else self.flags  # what it records does not hang on them
        done = run_mockup(source, self.where / f"{name}.so", self.integers, self.floats, flags=flags, records=1 << 16)
        if options.get("check"):
            assert check_records(done.records, self.trace, self.lifted) == ()
        return self.restore(), done


def verify(case: Case, chosen: Candidate) -> None:
    """Same bytes in every variant, no mismatch in the check build, other bytes with the wrong map; the same once more
    where a loop over several elements can be rerolled."""
    case.prepare()
    compare(case, chosen, "plain", "restrict")
    image = open_image(case.native.region.path, case.native.region.load_base)
    rolled = run_passes(case.lifted, Evidence.of(case.trace, case.structures, image.read), (reroll,), verify=True)
    if rolled != case.lifted:
        case.lifted = rolled
        assert case.run(None, "identity-check", check=True)[0] == case.expected
        compare(case, chosen, "simd")


def reads_again(case: Case, chosen: Candidate) -> bool:
    """Tells whether a mock-up in the layout is another one where it reads again what a source might."""
    given = case.lifted, chosen, case.trace, case.structures
    with contextlib.suppress(RemapError):
        return emit_mockup(*given, reread=True) != emit_mockup(*given)
    return False


def compare(case: Case, chosen: Candidate, *variants: str) -> None:
    """As ``verify``, for the lifted code as it is."""
    assert case.run(None, "identity", variant=variants[-1])[0] == case.expected
    for variant in variants:
        assert case.run(chosen, variant, variant=variant)[0] == case.expected
    if reads_again(case, chosen):
        assert case.run(chosen, "reread", reread=True)[0] == case.expected
    found, done = case.run(chosen, "check", check=True)
    assert found == case.expected
    assert done.mismatches == 0
    assert done.remapped > 0
    assert case.run(chosen, "wrong", wrong=True)[0] != case.expected


def particles(flags: tuple[str, ...], where: Path, n: int = 37) -> tuple[Case, Structure]:
    case = Case(PARTICLES, "move", flags, where)
    data = np.random.default_rng(1).random((n, 10))
    case.arrays, case.integers, case.floats = [data], [data.ctypes.data, n], [0.125]
    fields = f64_fields(*((name, 8 * k) for k, name in enumerate(("x", "y", "z", "vx", "vy", "vz"))))
    shape = Structure("s0", "particles", data.ctypes.data, data.nbytes, (Dim(n, 80),), fields)
    case.structures = (shape,)
    return case, shape


GRID = """
static double *at(double *d, long x, long y) { return d + (x * 13 + y) * 8; }
void step(double *d, long nx, long ny, long now) {
    for (long x = 1; x < nx - 1; x++)
        for (long y = 1; y < ny - 1; y++) {
            double u = at(d, x, y)[now];
            double sum = at(d, x - 1, y)[now] + at(d, x + 1, y)[now] + at(d, x, y - 1)[now] + at(d, x, y + 1)[now];
            at(d, x, y)[1 - now] = u + 0.1 * (sum - 4.0 * u) * at(d, x, y)[2 + now];
        }
}"""
