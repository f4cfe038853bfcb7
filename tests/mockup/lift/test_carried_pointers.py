"""Pointers that a loop carries, moved by whole elements, are a base and an index: in other layouts nothing is divided."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.evidence.binding import accesses
from layout_advise.mockup.ir.lifted import Assign, LiftedLoop, everything
from layout_advise.mockup.ir.node import Node
from layout_advise.mockup.ir.value_graph import Graph, parts
from layout_advise.mockup.lift.loops.carried_pointers import index_of, web_of
from tests.support import slower
from tests.support.mockups.case import FLAGS, Case, verify
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout

ROWS = """
struct row { long id; int customer, status; double price, discount; int quantity, warehouse; char comment[40]; };
struct bucket { int key, used; long count; double revenue; };
struct table { struct row *rows; long n; };
struct map { unsigned long mask; struct bucket *b; };
static inline unsigned long mix(unsigned long x) { x ^= x >> 33; x *= 0xff51afd7ed558ccdul; return x ^ x >> 33; }
"""

GROUPED = (
    ROWS
    + """
void group(const struct table *t, struct map *m)
{
    const struct row *r = t->rows;
    long n = t->n, i = 0;
    do {
        unsigned long k = mix(r->customer) & m->mask;
        while (m->b[k].used && m->b[k].key != r->customer) k = k + 1 & m->mask;
        struct bucket *b = &m->b[k];
        if (!b->used) { b->used = 1; b->key = r->customer; }
        b->count += i;
        b->revenue += r->price * (1 - r->discount) * r->quantity;
        do r++, i++; while (r->status != 1);
    } while (i < n);
}"""
)

PROBED = (
    ROWS
    + """
void probe(const struct table *t, struct map *m)
{
    for (long i = 0; i < t->n; i++) {
        const struct row *r = &t->rows[i];
        if (r->status != 1) continue;
        unsigned long k = mix(r->customer) & m->mask;
        while (m->b[k].used && m->b[k].key != r->customer) k = k + 1 & m->mask;
        struct bucket *b = &m->b[k];
        if (!b->used) { b->used = 1; b->key = r->customer; }
        b->count++;
        b->revenue += r->price * (1 - r->discount) * r->quantity;
    }
}"""
)

SKIPPED = (
    ROWS
    + """
void skip(const struct table *t, double *sum)
{
    const struct row *r = t->rows + 1, *end = t->rows + t->n;
    while (r < end) {
        *sum += r->price * r->quantity;
        if (r->status == 1) { r += 2; continue; }
        if (r->status == 2) { *sum *= 0.5; r += 3; continue; }
        do r++; while (r < end && r->status == 3);
    }
    sum[1] = r[-1].discount;
}"""
)

COUNT = 60
FIELDS = (
    Field("customer", 8, 4), Field("status", 12, 4), Field("price", 16, 8, "double"), Field("discount", 24, 8, "double"),
    Field("quantity", 32, 4),
)  # fmt: skip


def rows(source: str, symbol: str, flags: tuple[str, ...], where: Path, buckets: int) -> tuple[Case, Structure, Structure]:
    """A table of rows and a second array of elements of 24 bytes, given as ``symbol``'s arguments."""
    case = Case(source, symbol, (*flags, "-ffp-contract=off"), where)
    random = np.random.default_rng(7)
    data, found = np.zeros((COUNT + 4, 80), np.uint8), np.zeros((buckets, 3))
    data[:, 8:16].view(np.int32)[...] = random.integers(0, (9, 4), (COUNT + 4, 2))
    data[:, 16:32].view(np.float64)[...] = random.random((COUNT + 4, 2))
    data[COUNT, 12:16].view(np.int32)[...] = 1  # where a search stops at the latest
    data[:, 32:36].view(np.int32)[...] = random.integers(1, 10, (COUNT + 4, 1))
    table, held = np.array([data.ctypes.data, COUNT]), np.array([buckets - 1, found.ctypes.data])
    case.arrays = [data, found, table, held]
    case.integers = [table.ctypes.data, held.ctypes.data if "struct map *m" in source else found.ctypes.data]
    first = Structure("s0", "t", data.ctypes.data, data.nbytes, (Dim(COUNT + 4, 80),), FIELDS)
    fields = (Field("key", 0, 4), Field("used", 4, 4), Field("count", 8, 8), Field("revenue", 16, 8, "double"))
    second = Structure("s1", "b", found.ctypes.data, found.nbytes, (Dim(buckets, 24),), fields)
    return case, first, second


def divisions(case: Case, first: Structure) -> list[int]:
    """The indentation of the lines in which an address is divided by the size of a row."""
    text = emit_mockup(case.lifted, candidate(relayout(first, "soa")), case.trace, case.structures)
    return [
        len(found)
        for found in re.findall(rf"^( +)const int64_t (?:d|start)\w* = .* / {first.dims[0].stride}\)?;", text, re.MULTILINE)
    ]


@pytest.mark.parametrize("flags", [FLAGS["O3-avx2"], *slower((FLAGS["O2"],))], ids=["O3-avx2", "O2"])
@pytest.mark.parametrize("kind", ["soa", "aosoa", "compact"])
def test_rows_that_a_search_inside_the_loop_goes_to(kind: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    """As gcc often makes of ``continue``. Each access to the row it found was divided by the size of a row."""
    case, first, _ = rows(GROUPED, "group", flags, tmp_path, 32)
    case.structures = (first,)
    verify(case, candidate(relayout(first, kind)))
    assert set(divisions(case, first)) == {4}, "in front of the loops only"


@pytest.mark.parametrize("kind", ["soa", *slower(("aosoa",)), "compact"])
def test_a_pointer_that_is_computed_on_each_path(kind: str, tmp_path: Path) -> None:
    """A hash table's probe. Where the table stays as it is it would cost an address at each access, so that there are both
    forms."""
    case, first, second = rows(PROBED, "probe", FLAGS["O2"], tmp_path, 16)
    case.structures = (first, second)
    verify(case, candidate(relayout(first, kind)))
    verify(case, candidate(relayout(second, kind)))
    assert case.lifted.as_pointers is not None


@pytest.mark.parametrize("flags", [FLAGS["O2"], *slower((FLAGS["O3-avx2"],))], ids=["O2", "O3-avx2"])
@pytest.mark.parametrize("kind", ["soa", "aosoa", "compact"])
def test_paths_that_go_on_by_different_numbers_of_rows(kind: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    case, first, _ = rows(SKIPPED, "skip", flags, tmp_path, 2)
    case.structures = (first,)
    verify(case, candidate(relayout(first, kind)))
    assert set(divisions(case, first)) == {4}


SIFTED = """
struct entry { float key; unsigned id; };
void sift(struct entry *h, long n)
{
    for (long top = n / 2 - 1; top >= 0; top--) {
        struct entry moved = h[top];
        long hole = top;
        while (2 * hole + 2 < n) {
            long child = 2 * (hole + 1);
            struct entry *larger = h + child;
            if (larger->key < h[child - 1].key) {
                larger = h + (child - 1);
                __asm__("" : "+r"(larger));
                child--;
            }
            h[hole].key = larger->key;
            h[hole].id = larger->id;
            hole = child;
        }
        h[hole] = moved;
    }
}"""

MERGED = """
struct node { struct node *next; double key, other; };
double merged(struct node *a, struct node *b, struct node **out)
{
    struct node **end = out;
    double sum = 0;
    while (a && b) {
        struct node *least = a->key < b->key ? a : b;
        if (least == a) a = a->next; else b = b->next;
        *end = least;
        end = &least->next;
        sum = sum * 0.5 + least->other;
    }
    return sum;
}"""


CHAINED = """
struct node { struct node *next; double key, other; };
double chained(struct node *all, long n, const long *begins)
{
    double sum = 0;
    struct node *p = all;
    for (long k = 0; k < 3 * n; k++) {
        sum = sum * 0.5 + p->key;
        struct node *next = p->next;
        p = next ? next : all + begins[k % n];
    }
    return sum;
}"""


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_chains_that_begin_anew(flags: tuple[str, ...], tmp_path: Path) -> None:
    """A pointer that is loaded on one path and worked out on the other."""
    case = Case(CHAINED, "chained", (*flags, "-ffp-contract=off"), tmp_path)
    random = np.random.default_rng(8)
    nodes, begins = np.zeros((COUNT, 3)), random.integers(0, COUNT, COUNT)
    nodes[:, 1:] = random.random((COUNT, 2))
    nodes.view(np.int64)[: COUNT // 2, 0] = nodes.ctypes.data + 24 * random.integers(COUNT // 2, COUNT, COUNT // 2)
    case.arrays, case.integers = [nodes, begins], [nodes.ctypes.data, COUNT, begins.ctypes.data]
    fields = (Field("next", 0, 8), Field("key", 8, 8, "double"))
    held = Structure("s0", "all", nodes.ctypes.data, nodes.nbytes, (Dim(COUNT, 24),), fields)
    case.structures = (held,)
    case.prepare()
    found, done = case.run(candidate(relayout(held, "soa")), "check", check=True)
    assert (found, done.mismatches) == (case.expected, 0)
    assert case.run(candidate(relayout(held, "soa")), "plain")[0] == case.expected


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_the_larger_child_in_a_heap(flags: tuple[str, ...], tmp_path: Path) -> None:
    """As `std::pop_heap` has it: a pointer that is worked out on two paths, of which no index was made."""
    case = Case(SIFTED, "sift", flags, tmp_path)
    heap = np.zeros((COUNT, 8), np.uint8)
    heap[:, 0:4].view(np.float32)[:, 0] = np.random.default_rng(3).random(COUNT)
    heap[:, 4:8].view(np.uint32)[:, 0] = np.arange(COUNT)
    case.arrays, case.integers = [heap], [heap.ctypes.data, COUNT]
    fields = (Field("key", 0, 4, "float"), Field("id", 4, 4))
    entries = Structure("s0", "h", heap.ctypes.data, heap.nbytes, (Dim(COUNT, 8),), fields)
    case.structures = (entries,)
    verify(case, candidate(relayout(entries, "soa")))


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_lists_that_are_merged(flags: tuple[str, ...], tmp_path: Path) -> None:
    """Which of two pointers the loop follows is chosen by what they lead to."""
    case = Case(MERGED, "merged", (*flags, "-ffp-contract=off"), tmp_path)
    random = np.random.default_rng(5)
    nodes, out = np.zeros((COUNT, 3)), np.zeros(2, np.int64)
    nodes[:, 1:] = random.random((COUNT, 2))
    order = random.permutation(COUNT)
    for half in (order[: COUNT // 2], order[COUNT // 2 :]):
        nodes.view(np.int64)[half[:-1], 0] = nodes.ctypes.data + 24 * half[1:]
    starts = [nodes.ctypes.data + 24 * int(order[k]) for k in (0, COUNT // 2)]
    case.arrays, case.integers = [nodes, out], [*starts, out.ctypes.data]
    fields = (Field("next", 0, 8), Field("key", 8, 8, "double"), Field("other", 16, 8, "double"))
    held = Structure("s0", "a", nodes.ctypes.data, nodes.nbytes, (Dim(COUNT, 24),), fields)
    case.structures = (held,)
    case.prepare()
    for variant in ("plain", "restrict"):
        assert case.run(candidate(relayout(held, "soa")), variant, variant=variant)[0] == case.expected
    found, done = case.run(candidate(relayout(held, "soa")), "check", check=True)  # a wrong map would lead round in circles
    assert (found, done.mismatches) == (case.expected, 0)
    assert done.remapped > COUNT


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_a_value_that_is_computed_where_two_loops_are_left_is_there_before_it_is_handed_on(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    """The row behind the last one, where the inner search runs to the end: it was read before it was computed."""
    case, first, _ = rows(SKIPPED, "skip", flags, tmp_path, 2)
    case.arrays[0][COUNT - 6 : COUNT, 12:16].view(np.int32)[:, 0] = (0, 0, 0, 3, 3, 3)
    case.structures = (first,)
    verify(case, candidate(relayout(first, "soa")))


def test_the_index_that_is_carried_anyhow_is_taken(tmp_path: Path) -> None:
    """The row's number is carried beside its pointer: no second variable."""
    case, _, _ = rows(GROUPED, "group", FLAGS["O2"], tmp_path, 32)
    (over_rows,) = (item for item in case.lifted.body if isinstance(item, LiftedLoop))
    moves = [item for item in over_rows.body if isinstance(item, Assign)]
    assert sum(item.group == moves[-1].group for item in moves) == 1


UNEVEN = (
    ROWS
    + """
void uneven(const struct table *t, double *sum)
{
    const char *r = (const char *)t->rows, *end = r + t->n * 80;
    for (; r < end; r += ((const struct row *)r)->warehouse) *sum += ((const struct row *)r)->price;
}"""
)


def test_a_pointer_that_goes_on_by_bytes_stays_one(tmp_path: Path) -> None:
    """The step is read from the row: 80 bytes each time, but that is not known."""
    case, _, _ = rows(UNEVEN, "uneven", FLAGS["O2"], tmp_path, 2)
    case.arrays[0][:, 36:40].view(np.int32)[...] = 80
    case.prepare()
    assert case.run(None, "identity", check=True)[0] == case.expected
    assert any(isinstance(item, Assign) for item in everything(case.lifted.body))


SMALL = st.integers(-40, 40)
MASK = (1 << 64) - 1


@given(st.data())
def test_what_a_web_is_given_is_its_base_and_the_index_that_the_new_variable_is_given(data: st.DataObject) -> None:
    """Modulo 2**64, whatever the atoms hold; webs are found whose every value was made of one base and one stride."""
    g = Graph()
    atoms = [g.raw("livein", "i64", (), k) for k in range(3)]
    members = tuple(g.raw("phi", "i64") for _ in range(data.draw(st.integers(1, 3))))
    stride = data.draw(st.integers(2, 100))
    base = g.lin("i64", data.draw(SMALL), ((a, data.draw(SMALL)) for a in atoms))
    broken = data.draw(st.booleans())
    outside: set[Node] = set()
    inside: set[Node] = set()

    def moved(start: Node) -> Node:
        steps = [(atom, stride * data.draw(SMALL)) for atom in atoms]
        return g.lin("i64", stride * data.draw(SMALL) + (data.draw(SMALL) if broken else 0), ((start, 1), *steps))

    for member in members:
        starts = [base, *data.draw(st.lists(st.sampled_from((base, *members)), max_size=2))]
        member.args = tuple(moved(start) for start in starts)
        outside.update(arg for arg, start in zip(member.args, starts, strict=True) if start is base)
        inside.update(arg for arg, start in zip(member.args, starts, strict=True) if start is not base)
    web = web_of(members)
    if web is None:
        assert broken or (len(outside) == 1 and inside <= set(members)), "nothing moves"
        return
    assert broken or web.stride % stride == 0
    indices = {member: g.raw("phi", "i64") for member in members}
    holds = {node: data.draw(st.integers(0, MASK)) for node in (*atoms, *indices.values())}

    def value(node: Node) -> int:
        const, terms = parts(node)
        return (const + sum(coef * holds[atom] for atom, coef in terms)) & MASK

    start = (web.const + sum(coef * holds[atom] for atom, coef in web.terms)) & MASK
    holds |= {member: (start + web.stride * holds[index]) & MASK for member, index in indices.items()}
    for arg in (a for member in members for a in member.args):
        assert value(arg) == (start + web.stride * value(index_of(g, web, arg, indices))) & MASK


def test_the_original_s_layout_keeps_the_pointers(tmp_path: Path) -> None:
    """libsvm's kernel: with indices the unchanged mock-up took 1.25 times the original's time."""
    case, *_ = rows(SKIPPED, "skip", ("-O2",), tmp_path, 0)
    kept = case.lifted.as_pointers
    assert kept is not None
    assert kept.as_pointers is None
    assert kept != case.lifted
    case.prepare()
    indexed, case.lifted = case.lifted, kept
    assert case.run(None, "pointers")[0] == case.expected
    by_rows = [sum(c in (80, 88) for a in accesses(one.body) for _, c in a.address.terms) for one in (kept, indexed)]
    assert by_rows[0] < by_rows[1]
