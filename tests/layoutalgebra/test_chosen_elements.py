"""Irregular choices: exactness against brute force, the map against rule 7, copies there and back, mock-ups end to end."""

from __future__ import annotations

import itertools
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.bridges.declarations import declare
from layout_advise.layoutalgebra.derive.chosen_elements import (
    agree,
    choose,
    choose_by,
    filled_blocks,
    in_one_run,
    positions,
    used_elements,
)
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Relayout, Structure
from layout_advise.layoutalgebra.draw.memory import draw_relayout
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.explore.plans import AxisStep, Group, LayoutPlan
from layout_advise.layoutalgebra.explore.relayout import relayout
from layout_advise.layoutalgebra.explore.traffic import lines_chosen
from layout_advise.layoutalgebra.rules.rules import Compact
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Point, Stream
from layout_advise.layoutalgebra.terms.term import A, S, product, union
from layout_advise.mockup.emit.copies import chosen_tables, copy_function
from layout_advise.mockup.emit.frame import buffer_specs
from layout_advise.mockup.run.load import arguments, compile_mockup
from tests.support.algebra_structures import is_injective
from tests.support.mockups.case import FLAGS, Case, f64_fields, verify
from tests.support.mockups.emitted import emit_mockup

BASE = 0x7F0000000010


@st.composite
def choices(draw: st.DrawFn) -> tuple[int, list[int | None]]:
    """A block size, and for each block which of its elements is used (or none); at least one is."""
    block = draw(st.integers(2, 5))
    picks = draw(st.lists(st.none() | st.integers(0, block - 1), min_size=2, max_size=40))
    first = draw(st.integers(0, block - 1))
    return block, [first, *picks]


def numbers(block: int, picks: list[int | None]) -> list[int]:
    return [block * k + pick for k, pick in enumerate(picks) if pick is not None]


def grid(count: int, used: list[int]) -> np.ndarray:
    bits = np.zeros(count, np.bool_)
    bits[used] = True
    return bits


def structure(count: int, base: int = BASE, inner: int = 1, element: int = 32) -> Structure:
    dims = (Dim(count, inner * element), *((Dim(inner, element),) if inner > 1 else ()))
    return Structure("s0", "t", base, count * inner * element, dims, f64_fields(("x", 0), ("y", 16)), (), base)


def stream(addresses: list[int]) -> Stream:
    return FoldedStream(tuple(Point(Affine(a)) for a in addresses), len(addresses))


def by_class(shape: Structure, used: list[int], block: int) -> Relayout:
    found = choose_by(grid(shape.dims[0].count, used), 0, block)
    assert found is not None
    steps = (AxisStep(0, "div", block), *(AxisStep(k) for k in range(1, len(shape.dims))))
    return relayout(shape, LayoutPlan((Group(tuple(range(len(shape.fields))), steps),), found))


@given(choices())
def test_the_largest_block_is_found(case: tuple[int, list[int | None]]) -> None:
    block, picks = case
    used = numbers(block, picks)
    count = block * len(picks)
    found = choose(grid(count, used))
    largest = max(m for m in range(2, min(count, 64) + 1) if len({k // m for k in used}) == len(used))
    assert largest >= block
    if 2 * len(used) < -(-count // largest):  # scattered
        assert found is None
        return
    assert found is not None
    assert found.block == largest
    assert positions(found).tolist() == used
    assert found.elements == len(used)
    assert [k for k in range(count) if found.holds((Dim(count, 8),), (k,))] == used


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20, unique=True))
def test_two_of_one_block_are_refused(used: list[int]) -> None:
    for block in range(2, 6):
        found = choose_by(grid(31, used), 0, block)
        assert (found is None) == (len({k // block for k in used}) < len(used))


@given(st.integers(0, 40), st.integers(1, 40), st.integers(0, 40), st.integers(2, 5))
def test_a_part_that_is_one_run_is_not_picked_out(before: int, length: int, after: int, step: int) -> None:
    used = np.zeros(before + length + after, np.bool_)
    assert not in_one_run(used)
    used[before : before + length] = True
    assert in_one_run(used)
    used[:] = False
    used[before : before + length : step] = True
    assert in_one_run(used) == (length <= step)


@given(
    st.lists(st.integers(0, 3000), max_size=60, unique=True),
    st.sampled_from([1, 4, 24, 72, 5000]),
    st.integers(0, 9000),
    st.sampled_from([64, 4096]),
)
def test_filled_blocks_are_counted_as_bytes_are(used: list[int], element: int, base: int, size: int) -> None:
    ends = [(base + k * element, base + (k + 1) * element) for k in used]
    blocks = {block for start, end in ends for block in range(start // size, (end - 1) // size + 1)}
    part, count = filled_blocks(grid(3001, used), base, element, size)
    assert count == len(blocks)
    assert part == (pytest.approx(len(used) * element / (size * len(blocks))) if used else 0.0)


def test_neighbours_give_no_candidate() -> None:
    shape = structure(40)
    assert choose(grid(40, [0, 3, 7, 8, 9])) is None
    assert all(c.relayouts[0].chosen is None for c in explore([shape], walks={"s0": Walk(0, True, 0.1)}))
    # the algebra refuses the same: two terms with a block in common would share a place
    both = union([S([0, 1], 2) @ S([0], 2), S([1], 2) @ S([1], 2)])
    with pytest.raises(AlgebraError, match="share"):
        Compact(1).apply(both)


@given(choices(), st.integers(1, 3))
def test_the_map_is_rule_seven_and_injective(case: tuple[int, list[int | None]], inner: int) -> None:
    block, picks = case
    used = numbers(block, picks)
    layout = by_class(structure(block * len(picks), inner=inner), used, block)
    assert is_injective(layout)
    rows = {c: [k for k, pick in enumerate(picks) if pick == c] for c in range(block)}
    term = union([product([S(at, len(picks)), S([c], block), A(inner)]) for c, at in rows.items() if at])
    place = Compact(1).apply(term).place
    for k, i in itertools.product(used, range(inner)):
        assert layout.fields[0].place((k, i)[: len(layout.structure.dims)]) == 16 * place(k * inner + i)
    assert layout.bytes == 16 * len(picks) * inner


@given(choices(), st.integers(1, 3))
def test_lines_of_the_chosen_elements(case: tuple[int, list[int | None]], inner: int) -> None:
    block, picks = case
    used = numbers(block, picks)
    shape = structure(block * len(picks), inner=inner)
    layout = by_class(shape, used, block)
    assert layout.chosen is not None
    before, after = set(), set()
    for k, i in itertools.product(used, range(inner)):
        index = (k, i)[: len(shape.dims)]
        for number, field in enumerate(shape.fields):
            old = shape.base + 32 * (k * inner + i) + field.offset
            before |= {(old + b) // 64 for b in range(8)}
            after |= {(layout.fields[number].place(index) + b) // 64 for b in range(8)}
    assert lines_chosen(shape, layout.chosen) == len(before)
    assert lines_chosen(layout, layout.chosen) == len(after)


@given(choices(), choices())
def test_classes_agree(one: tuple[int, list[int | None]], two: tuple[int, list[int | None]]) -> None:
    block = max(one[0], two[0])
    length = max(len(one[1]), len(two[1]))
    picks = [[*p, *[None] * (length - len(p))] for _, p in (one, two)]
    first, second = (choose_by(grid(block * length, numbers(block, p)), 0, block) for p in picks)
    assert first is not None
    assert second is not None
    same = [a == b for a, b in zip(*picks, strict=True) if a is not None and b is not None]
    assert agree(first, second, block * length) == (all(same) or not any(same))


def test_used_elements_come_from_every_stream() -> None:
    shape = structure(10, inner=2)
    reads, writes = stream([BASE, BASE + 64 * 3 + 32]), stream([BASE + 64 * 7 + 16])
    used = used_elements(shape, [(reads, 8), (writes, 8)])
    assert used is not None
    assert np.argwhere(used).tolist() == [[0, 0], [3, 1], [7, 0]]
    wide = used_elements(shape, [(stream([BASE + 32]), 64)])  # one access over two elements uses both
    assert wide is not None
    assert np.argwhere(wide).tolist() == [[0, 1], [1, 0]]
    unknown = AddressSet(BASE, BASE + 64, 32, 2, None)
    assert used_elements(shape, [(reads, 8), (unknown, 8)]) is None
    assert used_elements(shape, [(stream([BASE + 640]), 8)]) is None
    assert used_elements(shape, []) is None


def test_the_candidate_says_what_it_does(tmp_path: Path) -> None:
    shape = structure(11)
    used = [0, 3, 4, 7, 9]
    walks = {"s0": Walk(0, True, 0.5, choose(grid(11, used)))}
    found = explore([shape], walks=walks)[0]
    layout = found.relayouts[0]
    assert found.families == ("split", "compact", "pad")
    assert found.derivation == ("9", "8", "3", "7")
    assert layout.term == "S_{0;2} ⊗ A_6 ⊗ A_2"
    assert "second part" in declare(found)
    assert ">3<" in draw_relayout(layout)
    assert ">2<" not in draw_relayout(layout)
    (tmp_path / "c.c").write_text(declare(found))
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", str(tmp_path / "c.c")], check=True)


def test_a_plain_array_has_a_candidate_only_where_elements_are_chosen() -> None:
    plain = Structure("s0", "t", BASE, 320, (Dim(40, 8),), f64_fields(("value", 0)), (), BASE)
    assert explore([plain], walks={"s0": Walk(0, True, 0.5)}) == ()
    used = [2 * k + k % 3 % 2 for k in range(20)]
    (found,) = explore([plain], walks={"s0": Walk(0, True, 0.5, choose(grid(40, used)))})
    assert found.relayouts[0].term == "S_{0;2} ⊗ A_20"
    assert [found.relayouts[0].fields[0].place((k,)) for k in used] == [8 * k for k in range(20)]


# ---- copies and mock-ups ----------------------------------------------------------------------------------------------

ADD = """
LA_EXPORT void la_run(struct la_context *context)
{
    double more;
    la_get(&more, &context->in, 0, 0, 8);
    for (uint64_t k = 0; k < la_buffers[0].bytes / 8; ++k)
        ((double *)context->buffers[0])[k] += more;
}"""


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(choices(), st.integers(1, 2))
def test_copies_there_and_back(tmp_path: Path, case: tuple[int, list[int | None]], inner: int) -> None:
    """Out of in is the identity on the chosen elements; changed buffers change their written fields and nothing else."""
    block, picks = case
    used = numbers(block, picks)
    data = np.random.default_rng(1).random((block * len(picks), inner, 4))
    layout = by_class(structure(len(data), data.ctypes.data, inner), used, block)
    every = frozenset({("s0", m.field) for m in layout.fields})
    text = "\n".join(
        [
            '#include "mockup.h"',
            buffer_specs([layout], 0, {}),
            chosen_tables([layout]),
            copy_function([layout], [0], every, True),
            copy_function([layout], [0], frozenset({("s0", 0)}), False),
            ADD,
        ]
    )
    add = compile_mockup(text, tmp_path / "copies.so", flags=("-O0", "-Wall", "-Wextra", "-Werror"))
    before = data.copy()
    add({}, arguments((), (0.0,)))
    stored = np.zeros((len(picks), inner, 2))
    for k in used:
        stored[k // block] = before[k, :, [0, 2]].T
    assert np.array_equal(add.buffers[0].view(np.float64), stored.ravel())
    assert np.array_equal(data, before)
    add({}, arguments((), (1.0,)))
    before[used, :, 0] += 1.0
    assert np.array_equal(data, before)


LATTICE = """
struct m { double re, im, unused[2]; };
struct v { double at[3]; };
void times(struct v *out, const struct m *u, const int *sites, long n) {
    for (long i = 0; i < n; i++) {
        int s = sites[i];
        for (int k = 0; k < 3; k++) out[s].at[k] = out[s].at[k] * u[s].re - out[s].at[k] * u[s].im;
    }
}"""


def lattice(flags: tuple[str, ...], where: Path) -> tuple[Case, Candidate]:
    """Every block of two uses one element, in random order."""
    case = Case(LATTICE, "times", flags, where)
    random = np.random.default_rng(7)
    out, matrix = random.random((100, 3)), random.random((100, 4))
    used = 2 * np.arange(50) + random.integers(0, 2, 50)
    sites = random.permutation(used).astype(np.int32)
    case.arrays, case.integers = [out, matrix, sites], [out.ctypes.data, matrix.ctypes.data, sites.ctypes.data, 50]
    vector = Structure("s0", "out", out.ctypes.data, out.nbytes, (Dim(100, 24), Dim(3, 8)), f64_fields(("at", 0)))
    pair = Structure("s1", "u", matrix.ctypes.data, matrix.nbytes, (Dim(100, 32),), f64_fields(("re", 0), ("im", 8)))
    case.structures = (vector, pair)
    layouts = tuple(by_class(s, sorted(used.tolist()), 2) for s in case.structures)
    return case, Candidate("c1", layouts, ("split", "compact"), ("5", "9", "7"))


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_a_mockup_of_an_irregular_choice(flags: tuple[str, ...], tmp_path: Path) -> None:
    case, chosen = lattice(flags, tmp_path)
    verify(case, chosen)
    assert emit_mockup(case.lifted, chosen, case.trace, case.structures).count("static const uint64_t chosen_") == 1


def test_the_traced_start_is_known_to_the_compiler(tmp_path: Path) -> None:
    """With the registers of the traced call the index has no unknown start; it is compared with the run's all the same."""
    case, chosen = lattice(("-O2",), tmp_path)
    case.prepare()
    assert "__builtin_trap" not in emit_mockup(case.lifted, chosen, case.trace, case.structures)
    gpr = [0] * 16
    for number, value in zip((7, 6, 2, 1), case.integers, strict=True):
        gpr[number] = value
    case.trace = replace(case.trace, registers=replace(case.trace.registers, gpr=tuple(gpr)))
    source = emit_mockup(case.lifted, chosen, case.trace, case.structures)
    assert source.count("!= 0) __builtin_trap();") == 2
    assert case.run(chosen, "known")[0] == case.expected
    found, done = case.run(chosen, "known-check", check=True)
    assert found == case.expected
    assert done.mismatches == 0
    assert case.run(chosen, "known-wrong", wrong=True)[0] != case.expected


@pytest.mark.parametrize("number", [0, 1])
def test_a_wrong_table_is_found(number: int, tmp_path: Path) -> None:
    """One block says that its other element is the chosen one."""
    case, chosen = lattice(("-O2",), tmp_path)
    case.prepare()
    layouts = list(chosen.relayouts)
    right = layouts[number].chosen
    assert right is not None
    bits = bytearray(right.bits)
    bits[3] ^= 0b11
    layouts[number] = replace(layouts[number], chosen=replace(right, bits=bytes(bits)))
    wrong = replace(chosen, relayouts=tuple(layouts))
    assert case.run(chosen, "right")[0] == case.expected
    assert case.run(wrong, "table")[0] != case.expected
    found, done = case.run(wrong, "checked", check=True)
    assert found != case.expected
    assert done.mismatches > 0
