"""Mock-ups of loops over the fields of an element, which stay loops where the layout allows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.evidence.binding import accesses
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.lifted import Load
from layout_advise.mockup.rewrite.passes import run_passes
from layout_advise.mockup.rewrite.unroll_field_loops import unroll_field_loops
from tests.support import slower
from tests.support.killable import EndedError, in_child
from tests.support.mockups.case import FLAGS, Case, compare, f64_fields, verify
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout

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

ROLLED = ("-O2", "-fno-tree-vectorize", "-fno-unroll-loops", "-fdisable-tree-cunroll", "-fdisable-tree-cunrolli")


def written_out(case: Case) -> None:
    """A loop over fields stays a loop in the lifted code, and is written out."""
    lifted = case.lifted
    case.lifted = run_passes(lifted, Evidence.of(case.trace, case.structures), (unroll_field_loops,), verify=True)
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
@pytest.mark.parametrize(("kind", "block"), [("soa", 0), *slower(("blocks", 4), ("aosoa", 4), ("compact", 0), ("split", 0))])
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


MESH = """
struct element { int n[3], mat; double area, dn[3][2], kappa, history[6]; };
struct node { double x[2], u, f; int bc, tag; double mass; };
struct mesh { int nn, ne; struct node *nodes; struct element *elems; };
void residual(struct mesh *m) {
    for (int e = 0; e < m->ne; e++) {
        double g[2] = {0, 0};
        for (int i = 0; i < 3; i++) {
            double u = m->nodes[m->elems[e].n[i]].u;
            g[0] += m->elems[e].dn[i][0] * u;
            g[1] += m->elems[e].dn[i][1] * u;
        }
        double q = m->elems[e].area * m->elems[e].kappa;
        for (int i = 0; i < 3; i++)
            m->nodes[m->elems[e].n[i]].f -= q * (g[0] * m->elems[e].dn[i][0] + g[1] * m->elems[e].dn[i][1]);
    }
}"""


def test_a_kernel_with_two_strides_in_a_record_is_called(tmp_path: Path) -> None:
    """Integers and pairs of doubles by one loop: gcc addresses the latter from four times the pointer to the former."""
    case = Case(MESH, "residual", ROLLED, tmp_path)
    random = np.random.default_rng(3)
    elements, nodes = random.random((61, 16)), random.random((40, 6))
    elements.view(np.int32)[:, :4] = random.integers(0, 40, (61, 4))
    head = np.array([61 << 32 | 40, nodes.ctypes.data, elements.ctypes.data], np.int64)
    case.arrays, case.integers = [elements, nodes, head], [head.ctypes.data]
    doubles = [Field(f"f{k}", k, 8) for k in range(16, 80, 8)]
    fields = (*(Field(f"n[{k}]", 4 * k, 4) for k in range(3)), *doubles)
    shapes = (
        Structure("s0", "elems", elements.ctypes.data, elements.nbytes, (Dim(61, 128),), fields),
        Structure("s1", "nodes", nodes.ctypes.data, nodes.nbytes, (Dim(40, 48),), (Field("u", 16, 8), Field("f", 24, 8))),
    )
    case.structures = shapes
    case.prepare()
    verify(case, candidate(*(relayout(shape, "compact") for shape in shapes)))


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


VECTORS = """
void lengths(const char *memory, const int *order, long n, const long *length, float *out) {
    for (long k = 0; k < n; k++) {
        const float *v = (const float *)(memory + 60 * order[k] + 12);
        float sum = 0;
        for (long i = 0; i < *length; i++) sum += v[i] * v[i];
        out[k] = sum;
    }
}"""


def vectors(folder: Path, length: int) -> tuple[Case, Structure]:
    """Records of 60 bytes with ``length`` floats at 12, which a loop goes over as often as a number in memory says."""
    case = Case(VECTORS, "lengths", ROLLED, folder)
    random = np.random.default_rng(11)
    data = random.random((40, 15)).astype(np.float32)
    order, count, out = random.permutation(40).astype(np.int32), np.array([length], np.int64), np.zeros(40, np.float32)
    case.arrays = [data, order, count, out]
    case.integers = [data.ctypes.data, order.ctypes.data, 40, count.ctypes.data, out.ctypes.data]
    fields = tuple(Field(f"f{12 + 4 * k}", 12 + 4 * k, 4) for k in range(length))
    shape = Structure("s0", "memory", data.ctypes.data, data.nbytes, (Dim(40, 60),), fields)
    case.structures = (shape,)
    case.prepare()
    return case, shape


@pytest.mark.parametrize(("kind", "block"), [("compact", 0), ("blocks", 4)])
def test_a_loop_over_fields_may_go_on_as_long_as_the_program_says(kind: str, block: int, tmp_path: Path) -> None:
    """hnswlib: how long the vectors are stands in memory."""
    case, shape = vectors(tmp_path, 8)
    chosen = candidate(relayout(shape, kind, block))
    text = emit_mockup(case.lifted, chosen, case.trace, case.structures)
    assert "> 8) __builtin_trap()" in text
    assert "== 8" not in text
    verify(case, chosen)


@pytest.mark.parametrize(("length", "ends"), [(7, False), (9, True)])
def test_a_loop_over_fields_that_goes_further_than_in_the_trace_is_stopped(length: int, ends: bool, tmp_path: Path) -> None:
    case, shape = vectors(tmp_path, 8)
    chosen = candidate(relayout(shape, "compact"))
    case.arrays[2][0] = length
    if ends:
        with pytest.raises(EndedError):
            in_child(lambda: case.run(chosen, "further")[0], 60)
    else:
        assert in_child(lambda: case.run(chosen, "shorter")[0], 60)


OWN_LENGTHS = """
struct joint { double weight; long used; float points[6]; };
void lengths(const struct joint *joints, long n, float *out) {
    for (long k = 0; k < n; k++) {
        float sum = 0;
        for (long i = 0; i < joints[k].used; i++) sum += joints[k].points[i] * joints[k].points[i];
        out[k] = sum;
    }
}"""


def joints(folder: Path) -> tuple[Case, Structure]:
    """Records of 40 bytes, each of which says how many of its six floats are used."""
    case = Case(OWN_LENGTHS, "lengths", ROLLED, folder)
    random = np.random.default_rng(13)
    data, out = random.random((40, 10)).astype(np.float32), np.zeros(40, np.float32)
    data.view(np.int64)[:, 1] = random.permutation(40) % 7
    case.arrays, case.integers = [data, out], [data.ctypes.data, 40, out.ctypes.data]
    fields = (Field("used", 8, 8), *(Field(f"points[{k}]", 16 + 4 * k, 4) for k in range(6)))
    shape = Structure("s0", "joints", data.ctypes.data, data.nbytes, (Dim(40, 40),), fields)
    case.structures = (shape,)
    case.prepare()
    return case, shape


@pytest.mark.parametrize(("kind", "block"), [("compact", 0), ("blocks", 4)])
def test_each_element_may_say_how_many_fields_it_has(kind: str, block: int, tmp_path: Path) -> None:
    """box2d's contacts of one or two points ("a loop runs over the fields of an element, not as often each time")."""
    case, shape = joints(tmp_path)
    chosen = candidate(relayout(shape, kind, block))
    assert "> 6) __builtin_trap()" in emit_mockup(case.lifted, chosen, case.trace, case.structures)
    compare(case, chosen, "plain", "restrict")


@pytest.mark.parametrize(("used", "ends"), [(5, False), (7, True)])
def test_an_element_with_more_fields_than_in_the_trace_is_stopped(used: int, ends: bool, tmp_path: Path) -> None:
    case, shape = joints(tmp_path)
    chosen = candidate(relayout(shape, "compact"))
    case.arrays[0].view(np.int64)[17, 1] = used
    if ends:
        with pytest.raises(EndedError):
            in_child(lambda: case.run(chosen, "further")[0], 60)
    else:
        assert in_child(lambda: case.run(chosen, "shorter")[0], 60)
