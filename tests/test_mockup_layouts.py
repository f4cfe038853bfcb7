"""Mock-ups in new layouts leave the same bytes as the compiled function, and a wrong map does not."""

from __future__ import annotations

import ctypes
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.nests import FoldedStream
from layout_advise.layoutalgebra.structure import Candidate, Dim, Field, Structure
from layout_advise.mockup.binding import accesses
from layout_advise.mockup.check import check_records
from layout_advise.mockup.emit import emit_mockup
from layout_advise.mockup.image import open_image
from layout_advise.mockup.lifted import Let, Load
from layout_advise.mockup.reroll import reroll
from layout_advise.mockup.unroll import unroll_fields
from tests.mockup_native import Mockup, Native, candidate, relayout, traced

FLAGS = {"O2": ("-O2",), "O3-avx2": ("-O3", "-march=haswell")}

PARTICLES = """
struct p { double x, y, z, vx, vy, vz, m, q, s, t; };
void move(struct p *a, long n, double dt) {
    for (long i = 0; i < n; i++) { a[i].x += a[i].vx * dt; a[i].y += a[i].vy * dt; a[i].z += a[i].vz * dt; }
}"""

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

GATHER = """
struct m { double re, im, unused[2]; };
struct v { double re, im; };
void times(struct v *out, const struct m *u, const int *sites, long n) {
    for (long i = 0; i < n; i++) {
        int s = sites[i];
        double re = out[s].re * u[s].re - out[s].im * u[s].im;
        out[s].im = out[s].re * u[s].im + out[s].im * u[s].re;
        out[s].re = re;
    }
}"""

PIXELS = """
struct pixel { float r, g, b, a; };
void grade(struct pixel *p, long n) {
    for (long i = 0; i < n; i++) { p[i].r *= 0.5f; p[i].g += 1.0f; p[i].b = 1.0f - p[i].b; p[i].a = p[i].a * p[i].a; }
}"""


ENERGIES = """
struct body { float x, y, z, vx, vy, vz, m, e; };
void energies(struct body *p, long n) {
    for (long i = 0; i < n; i++)
        p[i].e = 0.5f * p[i].m * (p[i].vx * p[i].vx + p[i].vy * p[i].vy + p[i].vz * p[i].vz);
}"""


ENTITIES = """
struct entity { char name[8]; float x[3], v[3]; unsigned flags; float rest[3]; };
void fly(struct entity *e, long n, float *dt) {
    for (long i = 0; i < n; i++) {
        if (!(e[i].flags & 1)) continue;
        for (int k = 0; k < 3; k++) {
            float to = e[i].x[k] + *dt * e[i].v[k];
            e[i].v[k] = to < 0.0f || to > 1.0f ? -e[i].v[k] : e[i].v[k];
            e[i].x[k] = to;
        }
    }
}
struct whole { double at[4]; };
void scale(struct whole *p, long n) {
    for (long i = 0; i < n; i++)
        for (int k = 0; k < 4; k++) p[i].at[k] = p[i].at[k] * p[i].at[k] - 0.5;
}"""


def f64_fields(*named: tuple[str, int]) -> tuple[Field, ...]:
    return tuple(Field(name, offset, 8, "double", 1, 1) for name, offset in named)


class Case:
    """A function, its memory and its structures; every run starts from the same bytes at the same addresses."""

    def __init__(self, source: str, symbol: str, flags: tuple[str, ...], where: Path) -> None:
        self.where = where
        self.flags = flags
        self.native = Native(source, symbol, where, flags)
        self.lifted = self.native.lifted()
        self.arrays: list[np.ndarray] = []
        self.integers: list[int] = []
        self.floats: list[float] = []
        self.structures: tuple[Structure, ...] = ()
        self.runs = 0

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

    def run(self, chosen: Candidate | None, name: str, **options: Any) -> tuple[list[bytes], Mockup]:
        source = emit_mockup(self.lifted, chosen, self.trace, self.structures, **options)
        self.runs += 1  # a library is loaded once a name
        flags = ("-O1",) if options.get("check") else self.flags
        mockup = Mockup(source, self.where / f"{name}{self.runs}.so", flags)
        mockup.arguments(self.integers, self.floats)
        records = mockup.records(1 << 16)
        mockup.run()
        if options.get("check"):
            seen = records[: mockup.context.check.count]
            assert check_records(seen, self.trace, self.lifted) == ()
        return self.restore(), mockup


def verify(case: Case, chosen: Candidate) -> None:
    """Same bytes in every variant, no mismatch in the check build, other bytes with the wrong map; the same once more
    where a loop over several elements can be rerolled."""
    case.prepare()
    compare(case, chosen, "plain", "restrict")
    image = open_image(case.native.region.path, case.native.region.load_base)
    rolled = reroll(case.lifted, case.trace, case.structures, image.read)
    if rolled != case.lifted:
        case.lifted = rolled
        assert case.run(None, "identity-check", check=True)[0] == case.expected
        compare(case, chosen, "simd")


def compare(case: Case, chosen: Candidate, *variants: str) -> None:
    """As ``verify``, for the lifted code as it is."""
    assert case.run(None, "identity", variant=variants[-1])[0] == case.expected
    for variant in variants:
        assert case.run(chosen, variant, variant=variant)[0] == case.expected
    found, mockup = case.run(chosen, "check", check=True)
    assert found == case.expected
    assert mockup.context.check.mismatches == 0
    assert mockup.context.check.remapped > 0
    assert case.run(chosen, "wrong", wrong=True)[0] != case.expected


def particles(flags: tuple[str, ...], where: Path, n: int = 37) -> tuple[Case, Structure]:
    case = Case(PARTICLES, "move", flags, where)
    data = np.random.default_rng(1).random((n, 10))
    case.arrays, case.integers, case.floats = [data], [data.ctypes.data, n], [0.125]
    fields = f64_fields(*((name, 8 * k) for k, name in enumerate(("x", "y", "z", "vx", "vy", "vz"))))
    shape = Structure("s0", "particles", data.ctypes.data, data.nbytes, (Dim(n, 80),), fields)
    case.structures = (shape,)
    return case, shape


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize(
    ("kind", "block"), [("soa", 0), ("aosoa", 4), ("aosoa", 8), ("blocks", 4), ("compact", 0), ("split", 0)]
)
def test_particles(kind: str, block: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    case, shape = particles(flags, tmp_path)
    verify(case, candidate(relayout(shape, kind, block)))


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize(("kind", "order"), [("soa", (0, 1)), ("soa", (1, 0)), ("compact", (1, 0)), ("aosoa", ())])
def test_two_dimensions(kind: str, order: tuple[int, ...], flags: tuple[str, ...], tmp_path: Path) -> None:
    case = Case(GRID, "step", flags, tmp_path)
    data = np.random.default_rng(2).random((11, 13, 8))
    case.arrays, case.integers = [data], [data.ctypes.data, 11, 13, 1]
    fields = f64_fields(("next", 0), ("now", 8), ("rate", 24))
    shape = Structure("s0", "grid", data.ctypes.data, data.nbytes, (Dim(11, 13 * 64), Dim(13, 64)), fields)
    case.structures = (shape,)
    verify(case, candidate(relayout(shape, kind, 4, order)))


COLUMNS = """
void columns(const double *m, double *sums, int rows, int cols) {
    for (int j = 0; j < cols; j++) {
        double sum = 0;
        for (int i = 0; i < rows; i++) sum += m[(long)i * cols + j];
        sums[j] = sum;
    }
}"""


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_rows_whose_length_is_an_argument(order: tuple[int, ...], flags: tuple[str, ...], tmp_path: Path) -> None:
    """Steps over rows were taken for steps over elements: in the transposed matrix they led out of it, and it crashed."""
    case = Case(COLUMNS, "columns", flags, tmp_path)
    data, sums = np.random.default_rng(7).random((11, 13)), np.zeros(13)
    case.arrays, case.integers = [data, sums], [data.ctypes.data, sums.ctypes.data, 11, 13]
    fields = (Field("value", 0, 8, "double", 1, 0),)
    shape = Structure("s0", "m", data.ctypes.data, data.nbytes, (Dim(11, 13 * 8), Dim(13, 8)), fields)
    case.structures = (shape,)
    verify(case, candidate(relayout(shape, "soa", 0, order)))


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("kind", ["soa", "aosoa", "compact"])
def test_two_structures_through_an_index_array(kind: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    case = Case(GATHER, "times", flags, tmp_path)
    random = np.random.default_rng(3)
    out, matrix = random.random((50, 2)), random.random((50, 4))
    sites = random.permutation(50)[:31].astype(np.int32)
    case.arrays, case.integers = [out, matrix, sites], [out.ctypes.data, matrix.ctypes.data, sites.ctypes.data, 31]
    pair = f64_fields(("re", 0), ("im", 8))
    first = Structure("s0", "out", out.ctypes.data, out.nbytes, (Dim(50, 16),), pair)
    second = Structure("s1", "matrix", matrix.ctypes.data, matrix.nbytes, (Dim(50, 32),), pair)
    case.structures = (first, second)
    verify(case, candidate(relayout(first, kind), relayout(second, kind)))


AGAIN = """
struct cell { double ex, ey, unused[2]; };
struct sim { struct cell *cells; long count; };
struct body { double x, y, vx; int cell; unsigned char alive; };
void push(const struct sim *const *held, struct body *b, long n)
{
    for (long i = 0; i < n; i++) {
        if (!b[i].alive) continue;
        const struct cell *c = &(*held)->cells[b[i].cell];
        b[i].x += b[i].vx * c->ex;
        b[i].y += c->ey;
    }
}
"""


@pytest.mark.parametrize("kind", ["soa", "aosoa", "compact"])
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_a_pointer_that_the_loop_loads_anew(kind: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    """gcc does not load it before a loop that may go on without it; `s.cell` of a particle code could not be re-laid."""
    case = Case(AGAIN, "push", flags, tmp_path)
    random = np.random.default_rng(5)
    cells, bodies = random.random((12, 4)), random.random((29, 4))
    bodies.view(np.int32)[:, 6] = random.integers(0, 12, 29)
    bodies.view(np.int32)[:, 7] = random.integers(0, 2, 29)
    sim = np.array([cells.ctypes.data, 12])
    held = np.array([sim.ctypes.data])
    case.arrays, case.integers = [cells, bodies, sim, held], [held.ctypes.data, bodies.ctypes.data, 29]
    first = Structure("s0", "cells", cells.ctypes.data, cells.nbytes, (Dim(12, 32),), f64_fields(("ex", 0), ("ey", 8)))
    case.structures = (first,)
    verify(case, candidate(relayout(first, kind)))


NODES = """
struct node { double rank, next, share, x, y, weight; long label, community; };
void gather(struct node *v, const int *edges, long n, double damping)
{
    for (long i = 0; i < n; i++) {
        double sum = 0.0;
        for (long k = 0; k < 2; k++) {
            const struct node *u = &v[edges[2 * i + k]];
            sum += u->rank * u->share;
        }
        v[i].next = damping * sum;
    }
}
"""


def nodes(flags: tuple[str, ...], where: Path) -> tuple[Case, Structure]:
    case = Case(NODES, "gather", (*flags, "-ffp-contract=off"), where)
    random = np.random.default_rng(4)
    data, edges = random.random((48, 8)), random.integers(0, 48, 2 * 48).astype(np.int32)
    case.arrays, case.integers, case.floats = [data, edges], [data.ctypes.data, edges.ctypes.data, 48], [0.5]
    fields = f64_fields(("rank", 0), ("next", 8), ("share", 16))
    shape = Structure("s0", "v", data.ctypes.data, data.nbytes, (Dim(48, 64),), fields)
    case.structures = (shape,)
    return case, shape


@pytest.mark.parametrize(("kind", "known"), [("compact", True), ("blocks", True), ("soa", False)])
def test_iterations_that_ran_side_by_side_over_gathered_records_do_so_again(kind: str, known: bool, tmp_path: Path) -> None:
    """gcc sees that the fields of one structure are apart, and no check at run time could tell of gathered ones: the
    identity of examples/graph took 0.7 times the original's time for not being as clumsy."""
    case, shape = nodes(("-O3", "-march=haswell"), tmp_path)
    chosen = candidate(relayout(shape, kind))
    verify(case, chosen)
    same = emit_mockup(case.lifted, None, case.trace, case.structures)
    assert "LA_INDEPENDENT" in same
    assert "LA_MEMBER(la_f64, e0, 16)" in same
    assert ("LA_INDEPENDENT" in emit_mockup(case.lifted, chosen, case.trace, case.structures)) == known
    assert "LA_INDEPENDENT" in emit_mockup(case.lifted, chosen, case.trace, case.structures, variant="simd")
    built = Mockup(same, tmp_path / "same.so", ("-O3", "-march=haswell", "-ffp-contract=off", "-fno-strict-aliasing"))
    code = subprocess.run(["objdump", "-d", str(tmp_path / "same.so")], capture_output=True, text=True, check=True).stdout
    assert built is not None
    assert "vmulpd" in code


def test_the_fields_of_a_record_are_reached_from_one_pointer_an_iteration(tmp_path: Path) -> None:
    """As `p[i].x` in a source: gcc -O2 makes a vector of `x` and `y`, and with an address for each access does not."""
    case, shape = particles(("-O2",), tmp_path)
    verify(case, candidate(relayout(shape, "compact")))
    text = emit_mockup(case.lifted, candidate(relayout(shape, "compact")), case.trace, case.structures)
    assert len(re.findall(r"uint8_t \*const e\d+ = ", text)) == 1
    Mockup(text, tmp_path / "compact.so", ("-O2", "-ffp-contract=off", "-fno-strict-aliasing"))
    found = subprocess.run(["objdump", "-d", str(tmp_path / "compact.so")], capture_output=True, text=True, check=True)
    assert "mulpd" in found.stdout
    apart = emit_mockup(case.lifted, candidate(relayout(shape, "soa")), case.trace, case.structures)
    assert not re.findall(r"uint8_t \*const e\d+ = ", apart)


def test_iterations_that_ran_one_by_one_are_not_said_to_be_independent(tmp_path: Path) -> None:
    case, shape = nodes(("-O2",), tmp_path)
    verify(case, candidate(relayout(shape, "compact")))
    assert "LA_INDEPENDENT" not in emit_mockup(case.lifted, None, case.trace, case.structures)


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("kind", ["soa", "aosoa", "blocks"])
def test_floats_all_fields_used(kind: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    case = Case(PIXELS, "grade", flags, tmp_path)
    data = np.random.default_rng(4).random((45, 4)).astype(np.float32)
    case.arrays, case.integers = [data], [data.ctypes.data, 45]
    fields = tuple(Field(name, 4 * k, 4, "float", 1, 1) for k, name in enumerate("rgba"))
    shape = Structure("s0", "pixels", data.ctypes.data, data.nbytes, (Dim(45, 16),), fields)
    case.structures = (shape,)
    verify(case, candidate(relayout(shape, kind, 8)))


def test_the_arrays_of_a_block_are_seen_not_to_overlap(tmp_path: Path) -> None:
    """gcc -O2 checks no overlap at run time: it vectorises a plain loop over a block's elements as it does a hand-written
    one only where all of the block is reached from one pointer."""
    case = Case(PIXELS, "grade", ("-O2",), tmp_path)
    data = np.random.default_rng(4).random((45, 4)).astype(np.float32)
    case.arrays, case.integers = [data], [data.ctypes.data, 45]
    fields = tuple(Field(name, 4 * k, 4, "float", 1, 1) for k, name in enumerate("rgba"))
    shape = Structure("s0", "pixels", data.ctypes.data, data.nbytes, (Dim(45, 16),), fields)
    case.structures = (shape,)
    case.prepare()
    packed = {}
    for kind in ("blocks", "aosoa"):
        assert case.run(candidate(relayout(shape, kind, 4)), kind)[0] == case.expected
        code = subprocess.run(
            ["objdump", "-d", f"{kind}{case.runs}.so"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        packed[kind] = len(re.findall(r"\t(?:mul|add|sub)ps ", code.stdout))
    assert packed["blocks"] > 3
    assert packed["aosoa"] == 0  # what the flags do with pointers of their own


COMPLEX = """
struct c { double re, im; };
void turn(struct c *out, const struct c *a, const struct c *b, long n) {
    for (long i = 0; i < n; i++) {
        double re = a[i].re * b[i].re, im = a[i].im * b[i].im;
        out[i].re = re - out[i].re;
        out[i].im = im + out[i].im;
    }
}"""


def test_products_are_rounded_where_the_original_rounds_them(tmp_path: Path) -> None:
    """gcc vectorises the two halves of a record; it must not fuse product and sum then."""
    case = Case(COMPLEX, "turn", ("-O1", "-march=haswell", "-ffp-contract=off"), tmp_path)
    random = np.random.default_rng(5)
    case.arrays = [random.random((40, 2)) for _ in range(3)]
    case.integers = [*(a.ctypes.data for a in case.arrays), 40]
    pair = f64_fields(("re", 0), ("im", 8))
    shapes = [Structure(f"s{k}", f"a{k}", a.ctypes.data, a.nbytes, (Dim(40, 16),), pair) for k, a in enumerate(case.arrays)]
    case.structures = tuple(shapes)
    case.prepare()
    case.flags = ("-O3", "-march=haswell")
    chosen = candidate(*(relayout(shape, "compact") for shape in shapes))
    for variant in ("plain", "restrict"):
        assert case.run(chosen, variant, variant=variant)[0] == case.expected


@pytest.mark.parametrize("kind", ["soa", "aosoa"])
def test_floats_gathered_by_shuffles(kind: str, tmp_path: Path) -> None:
    """The fields of eight structures come together by permutations whose indices lie in memory."""
    case = Case(ENERGIES, "energies", ("-std=c11", *FLAGS["O3-avx2"]), tmp_path)
    data = np.random.default_rng(6).random((45, 8)).astype(np.float32)
    case.arrays, case.integers = [data], [data.ctypes.data, 45]
    fields = tuple(Field(name, offset, 4) for name, offset in (("vx", 12), ("vy", 16), ("vz", 20), ("m", 24), ("e", 28)))
    shape = Structure("s0", "bodies", data.ctypes.data, data.nbytes, (Dim(45, 32),), fields)
    case.structures = (shape,)
    verify(case, candidate(relayout(shape, kind, 8)))
    moved = [a for a in accesses(case.lifted.body) if a.lanes]
    assert {len(a.lanes) for a in moved} == {8}
    assert not [item for item in case.lifted.body if isinstance(item, Let) and item.name == "select"]


ROLLED = ("-O2", "-fno-tree-vectorize", "-fno-unroll-loops", "-fdisable-tree-cunroll", "-fdisable-tree-cunrolli")


def written_out(case: Case) -> None:
    """A loop over fields stays a loop in the lifted code, and is written out."""
    lifted = case.lifted
    case.lifted = unroll_fields(lifted, case.trace, case.structures)
    assert len(list(accesses(case.lifted.body))) > 2 * len(list(accesses(lifted.body)))


def entities(folder: Path, *, every: bool) -> tuple[Case, Structure]:
    """Entities of which some move; the fields of two arrays in each are gone over by a loop."""
    case = Case(ENTITIES, "fly", ROLLED, folder)
    random = np.random.default_rng(7)
    data = random.random((53, 12)).astype(np.float32)
    data.view(np.uint32)[:, 8] = 1 if every else random.integers(0, 2, 53)
    step = np.array([0.25], np.float32)
    case.arrays, case.integers = [data, step], [data.ctypes.data, 53, step.ctypes.data]
    named = [(f"{name}[{k}]", offset + 4 * k) for name, offset in (("x", 8), ("v", 20)) for k in range(3)]
    fields = tuple(Field(name, offset, 4) for name, offset in [*named, ("flags", 32)])
    shape = Structure("s0", "entities", data.ctypes.data, data.nbytes, (Dim(53, 48),), fields)
    case.structures = (shape,)
    case.prepare()
    return case, shape


@pytest.mark.parametrize("every", [False, True], ids=["some", "all"])
@pytest.mark.parametrize(("kind", "block"), [("soa", 0), ("aosoa", 4), ("compact", 0), ("split", 0), ("blocks", 4)])
def test_loops_over_the_fields_of_an_element(kind: str, block: int, every: bool, tmp_path: Path) -> None:
    """Some elements only: their addresses do not fold, and which field is whose is seen from the addresses as a set."""
    case, shape = entities(tmp_path, every=every)
    chosen = candidate(relayout(shape, kind, block))
    if kind in ("soa", "aosoa", "split"):  # arrays of their own
        with pytest.raises(RemapError, match="a loop runs over the fields of an element"):
            emit_mockup(case.lifted, chosen, case.trace, case.structures)
    else:
        assert "LA_OPAQUE(n" in emit_mockup(case.lifted, chosen, case.trace, case.structures)
        verify(case, chosen)
    written_out(case)
    verify(case, chosen)


def test_a_loop_over_fields_that_are_moved_unevenly_is_no_loop_any_more(tmp_path: Path) -> None:
    case, shape = entities(tmp_path, every=True)
    chosen = candidate(relayout(shape, "compact"))
    (layout,) = chosen.relayouts
    first, second, *rest = layout.fields
    exchanged = (replace(first, offset=second.offset), replace(second, offset=first.offset), *rest)
    uneven = replace(chosen, relayouts=(replace(layout, fields=exchanged),))
    with pytest.raises(RemapError, match="no even distances"):
        emit_mockup(case.lifted, uneven, case.trace, case.structures)
    written_out(case)
    verify(case, uneven)


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_floats_that_are_turned_and_stored_are_floats(flags: tuple[str, ...], tmp_path: Path) -> None:
    """As integers a choice between them is made with moves and branches, as floats with blends."""
    case = Case(ENTITIES, "fly", flags, tmp_path)
    random = np.random.default_rng(9)
    data = (random.random((41, 12)) - 0.5).astype(np.float32)
    data.view(np.uint32)[:, 8] = random.integers(0, 2, 41)
    step = np.array([4.0], np.float32)
    case.arrays, case.integers = [data, step], [data.ctypes.data, 41, step.ctypes.data]
    case.prepare()
    assert case.run(None, "identity", variant="plain")[0] == case.expected
    assert case.run(None, "identity", check=True)[0] == case.expected
    loaded = {a.value.ty for a in accesses(case.lifted.body) if isinstance(a, Load)}
    assert "f32" in loaded
    assert "i32" not in loaded  # the flag is read as a byte


@pytest.mark.parametrize(("kind", "block"), [("soa", 0), ("aosoa", 4)])
def test_loops_over_a_whole_element(kind: str, block: int, tmp_path: Path) -> None:
    """All fields are alike: only the order tells which comes first."""
    case = Case(ENTITIES, "scale", ROLLED, tmp_path)
    data = np.random.default_rng(8).random((29, 4))
    case.arrays, case.integers = [data], [data.ctypes.data, 29]
    fields = f64_fields(*((f"at[{k}]", 8 * k) for k in range(4)))
    shape = Structure("s0", "all", data.ctypes.data, data.nbytes, (Dim(29, 32),), fields)
    case.structures = (shape,)
    case.prepare()
    written_out(case)
    verify(case, candidate(relayout(shape, kind, block)))


LIST = """
struct node { struct node *next; double key, sum; };
void walk(struct node *p, double by) { for (; p; p = p->next) p->sum += by * p->key; }"""


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_a_linked_list_is_refused_by_name(flags: tuple[str, ...], tmp_path: Path) -> None:
    case = Case(LIST, "walk", flags, tmp_path)
    data = np.zeros((9, 3))
    order = np.random.default_rng(2).permutation(9)
    places = data.ctypes.data + 24 * order
    data.view(np.int64)[order, 0] = [*places[1:], 0]
    case.arrays, case.integers, case.floats = [data], [int(places[0])], [0.5]
    fields = (Field("next", 0, 8), *f64_fields(("key", 8), ("sum", 16)))
    shape = Structure("s0", "nodes", data.ctypes.data, data.nbytes, (Dim(9, 24),), fields)
    case.structures = (shape,)
    case.prepare()
    assert case.run(None, "identity")[0] == case.expected
    with pytest.raises(RemapError, match="as in a linked list"):
        emit_mockup(case.lifted, candidate(relayout(shape, "soa")), case.trace, case.structures)


def test_a_structure_that_shares_a_reference_is_refused(tmp_path: Path) -> None:
    case, shape = particles(("-O2",), tmp_path)
    case.prepare()
    half = Structure("s0", "half", shape.base, shape.bytes // 2, (Dim(18, 80),), shape.fields)
    case.structures = (half,)
    with pytest.raises(RemapError, match="touches other memory too"):
        emit_mockup(case.lifted, candidate(relayout(half, "soa")), case.trace, case.structures)


def test_a_missing_record_is_found(tmp_path: Path) -> None:
    case, _ = particles(("-O2",), tmp_path)
    case.prepare()
    references = case.trace.references
    assert any("times in the trace" in p for p in check_records(np.empty(0, np.uint64), case.trace, case.lifted))
    streams = [s for s in case.trace.streams if isinstance(s, FoldedStream)]
    assert len(streams) == len(references)
    pairs = [(r.id, a) for r, s in zip(references, streams, strict=True) for a in s.expand()]
    words = np.array([address + 8 * (number == 0) | number << 48 for number, address in pairs], np.uint64)
    problems = check_records(words, case.trace, case.lifted)
    assert len(problems) == 1
    assert "execution 0 went to" in problems[0]


def test_addresses_start_from_pointer_parameters(tmp_path: Path) -> None:
    """A base made from a number lets gcc compute one array's address from another's: 8 % slower on daxpy at -O2."""
    case = Case(PARTICLES, "move", FLAGS["O2"], tmp_path)
    array = np.arange(40, dtype=np.float64)
    case.arrays, case.integers, case.floats = [array], [array.ctypes.data, 4], [0.5]
    case.prepare()
    source = emit_mockup(case.lifted, None, case.trace, ())
    assert "uint8_t *base_rdi" in source
    assert "(uint8_t *)rdi" not in source


WORDS = """
void mark(float *x, long n) {
    for (long i = 0; i < n; i++) {
        if (!(((unsigned char *)&x[2 * i + 1])[0] & 1)) continue;
        float y = x[2 * i] + 1.5f;
        x[2 * i + 1] = y > 3.0f ? -x[2 * i + 1] : x[2 * i + 1];
        x[2 * i] = y;
    }
}"""


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("kind", ["soa", "split", "compact"])
@pytest.mark.parametrize("sizes", [(1, 1, 2), (2, 2)])
def test_words_over_several_fields(kind: str, sizes: tuple[int, ...], flags: tuple[str, ...], tmp_path: Path) -> None:
    """A word is read and written whole where the fields are parts of it that lie apart in the new layout."""
    case = Case(WORDS, "mark", flags, tmp_path)
    data = np.random.default_rng(5).random(80).astype(np.float32) * 4
    case.arrays, case.integers = [data], [data.ctypes.data, 40]
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    fields = tuple(Field(f"b{at}", at, size, None, 1, 1) for at, size in zip(starts, sizes, strict=True))
    shape = Structure("s0", "words", data.ctypes.data, data.nbytes, (Dim(80, 4),), fields)
    case.structures = (shape,)
    verify(case, candidate(relayout(shape, kind)))


def test_the_compiler_is_not_told_which_field_the_call_chose(tmp_path: Path) -> None:
    """``[now]`` and ``[1 - now]`` lie interleaved: what only the trace knows made a loop vectorise that by hand does not."""
    case = Case(GRID, "step", FLAGS["O2"], tmp_path)
    data = np.random.default_rng(2).random((11, 13, 8))
    case.arrays, case.integers = [data], [data.ctypes.data, 11, 13, 1]
    shape = Structure(
        "s0",
        "grid",
        data.ctypes.data,
        data.nbytes,
        (Dim(11, 13 * 64), Dim(13, 64)),
        f64_fields(("next", 0), ("now", 8), ("rate", 24)),
    )
    case.structures = (shape,)
    case.prepare()
    source = emit_mockup(case.lifted, candidate(relayout(shape, "compact")), case.trace, case.structures)
    assert source.count("LA_UNKNOWN(") >= 2
    alone, shape = particles(FLAGS["O2"], tmp_path)
    alone.prepare()
    assert "LA_UNKNOWN(" not in emit_mockup(alone.lifted, candidate(relayout(shape, "soa")), alone.trace, alone.structures)


def test_new_arrays_lie_in_pages_as_a_program_would_have_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One variable's parts follow each other; mapped blocks all start alike. Alike slowed stores after loads by 4 %."""

    def starts(kind: Literal["heap", "global"]) -> list[int]:
        case, shape = particles(FLAGS["O2"], tmp_path)
        case.structures = (replace(shape, kind=kind),)
        case.prepare()
        source = emit_mockup(case.lifted, candidate(relayout(case.structures[0], "soa")), case.trace, case.structures)
        return [int(start) for start in re.findall(r"\.offset = (\d+)", source)]

    assert starts("global") == starts("heap") == [320 * k for k in range(6)]
    monkeypatch.setattr("layout_advise.mockup.emit.frame.MMAP_THRESHOLD", 37 * 8)
    assert starts("global") == [320 * k for k in range(6)]
    assert starts("heap") == [0] * 6
