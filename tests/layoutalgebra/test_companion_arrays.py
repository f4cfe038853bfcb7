"""Records in arrays of plain numbers: what is used of and beside them tells, and what a compiler made of loops does not. And
records that are reached by their links, which have no rows."""

from __future__ import annotations

import pytest

from layout_advise.decide.untried import doubt_steps
from layout_advise.layoutalgebra import explore
from layout_advise.layoutalgebra.derive.accesses import Access, Derived, MemoryObjectShape
from layout_advise.layoutalgebra.derive.companion_arrays import records_beside
from layout_advise.layoutalgebra.derive.declared import Declared, Member
from layout_advise.layoutalgebra.derive.derive import derive_structure
from layout_advise.reports.model.hotspot import Verdict
from tests.support.streams import BLOCK_AT, check_exact, stream


def walk_of(numbers: int, first: int, count: int, base: int = BLOCK_AT) -> Access:
    """Number ``first`` of each of ``count`` records of so many doubles."""
    return Access(stream(base + 8 * first, (8 * numbers, count)), 8)


@pytest.mark.parametrize(("numbers", "others", "record"), [(3, 240, 24), (9, 80, 72), (5, 80, 0), (4, 180, 0)])
def test_an_array_that_is_used_number_by_number_beside_it_tells_records(numbers: int, others: int, record: int) -> None:
    """``m[i]`` beside ``v[3 * i]``; in a loop that is written out five times all arrays go on by five."""
    count = 720 // numbers
    shape = MemoryObjectShape("s0", "v", BLOCK_AT, 8 * numbers * count)
    double = Declared("double", 8, (), (), 8)
    records = [walk_of(numbers, k, count) for k in range(numbers)]
    mass = [walk_of(1, 0, others, BLOCK_AT + 0x10000)]
    beside = MemoryObjectShape("s1", "m", BLOCK_AT + 0x10000, 8 * others)
    derived = [derive_structure(shape, records, double), derive_structure(beside, mass, double)]
    found = records_beside(derived, {"s0": records, "s1": mass})
    assert found == ({"s0": record} if record else {})
    if record:
        again = derive_structure(shape, records, double, record=record)
        assert (again.structure.element_bytes, again.structure.count, again.steps) == (record, count, 1)
        assert [f.name for f in again.structure.fields] == [f"[{k}]" for k in range(numbers)]
        assert {"soa", "aosoa"} <= {name for c in explore([again.structure], lanes=(16,)) for name in c.families}
        check_exact(again, records)
    other = MemoryObjectShape("s1", "p", BLOCK_AT + 0x20000, 40 * others)
    structures = [walk_of(5, k, others, BLOCK_AT + 0x20000) for k in (0, 2)]
    derived = [derived[0], derive_structure(other, structures)]
    assert derived[1].structure.element_bytes == 40
    assert records_beside(derived, {"s0": records, "s1": structures}) == ({"s0": record} if record else {})
    derived = [derived[0], derive_structure(beside, mass, double)]
    unrolled = [walk_of(numbers, k, count, BLOCK_AT + 0x10000) for k in range(numbers)]
    assert records_beside(derived, {"s0": records, "s1": unrolled}) == {}


WIDE, HIGH = 30, 20
PULLED = {0: (0, 0), 1: (-1, 0), 2: (0, -1), 3: (1, 0), 4: (0, 1), 5: (-1, -1), 6: (1, -1), 7: (1, 1), 8: (-1, 1)}
"""From which neighbour (columns, rows) a cell takes the number of each direction."""


def inner_cells(first: int, numbers: int, base: int, size: int = 8) -> Access:
    """Number ``first``, counted from the first number of the cell in column and row 1, of all cells but the outermost."""
    start = base + 8 * (numbers * (WIDE + 1) + first)
    return Access(stream(start, (8 * numbers * WIDE, HIGH - 2), (8 * numbers, WIDE - 2)), size)


def pulled(numbers: int, base: int) -> list[Access]:
    """Each number of a record from another neighbour."""
    places = ((q, PULLED[q]) for q in range(numbers))
    return [inner_cells(numbers * (x + WIDE * y) + q, numbers, base) for q, (x, y) in places]


def plain(name: str, numbers: int, base: int, accesses: list[Access]) -> Derived:
    shape = MemoryObjectShape(name, name, base, 8 * numbers * WIDE * HIGH)
    return derive_structure(shape, accesses, Declared("double", 8, (), (), 8))


@pytest.mark.parametrize(("numbers", "record"), [(9, 72), (7, 56), (3, 24), (8, 0)])
def test_numbers_that_come_from_several_neighbours_are_records(numbers: int, record: int) -> None:
    """``f[9 * (cell - 1) + 1]``, ``f[9 * (cell - row) + 2]``, ...; put down in a row, with vectors of four."""
    taken, other = pulled(numbers, BLOCK_AT), BLOCK_AT + 0x100000
    put = [inner_cells(k, numbers, other, 32) for k in range(0, numbers - 3, 4)]
    put += [inner_cells(k, numbers, other) for k in range(4 * len(put), numbers)]
    accesses = {"now": taken, "next": put}
    derived = [plain("now", numbers, BLOCK_AT, taken), plain("next", numbers, other, put)]
    found = records_beside(derived, accesses)
    assert found == ({"now": record, "next": record} if record else {})
    assert records_beside(derived[1:], {"next": put}) == {}
    if record:
        again = derive_structure(
            MemoryObjectShape("now", "now", BLOCK_AT, 8 * numbers * WIDE * HIGH),
            taken,
            Declared("double", 8, (), (), 8),
            record=record,
        )
        assert [d.count for d in again.structure.dims] == [HIGH, WIDE]
        assert [f.name for f in again.structure.fields] == [f"[{k}]" for k in range(numbers)]
        check_exact(again, taken)


@pytest.mark.parametrize(("cells", "records"), [(4, 72), (2, 72), (32, None)])
def test_several_records_an_iteration_are_records_too(cells: int, records: int | None) -> None:
    """As clang takes four cells of a lattice Boltzmann step: what it reads are single numbers of each, what it writes fills
    the four, sixteen bytes at a time, and tells nothing alone."""
    count, other = 30 * cells, BLOCK_AT + 0x100000
    taken = [
        Access(stream(BLOCK_AT + 8 * (9 * (WIDE + 40 + cell + 7 * q) + q), (72 * cells, 30)), 8)
        for cell in range(cells)
        for q in range(9)
    ]
    put = [Access(stream(other + 16 * k, (72 * cells, 30)), 16) for k in range(9 * cells // 2)]
    accesses = {"now": taken, "next": put}
    double = Declared("double", 8, (), (), 8)
    derived = [
        derive_structure(MemoryObjectShape(name, name, base, 72 * (count + 200)), uses, double)
        for (name, uses), base in zip(accesses.items(), (BLOCK_AT, other), strict=True)
    ]
    assert [d.steps for d in derived] == [9, 9]
    assert records_beside(derived, accesses).get("next") == records
    assert records_beside(derived[1:], {"next": put}) == {}


@pytest.mark.parametrize("window", [(0,), (0, 400), (-30, 0, 30)])
@pytest.mark.parametrize("times", [3, 5])
def test_loops_that_are_written_out_tell_no_records(window: tuple[int, ...], times: int) -> None:
    """Sums over numbers far apart, ``times`` of them in an iteration."""
    numbers = sorted({k + at for at in window for k in range(times)})
    accesses = [Access(stream(BLOCK_AT + 8 * (40 + n), (8 * times, 100)), 8) for n in numbers]
    shape = MemoryObjectShape("a", "a", BLOCK_AT, 8 * times * 300)
    derived = derive_structure(shape, accesses, Declared("double", 8, (), (), 8))
    assert derived.steps == times
    assert records_beside([derived], {"a": accesses}) == {}


@pytest.mark.parametrize(("numbers", "steps"), [(1, 1), (2, 1), (3, 3), (4, 1), (6, 3), (8, 1), (9, 9)])
def test_steps_that_no_unrolling_makes_may_be_records(numbers: int, steps: int) -> None:
    """``vel[3 * i + 1]`` of a molecular dynamics code: "keep it", said the tool, as of any plain array."""
    count = 1440 // numbers
    accesses = [Access(stream(BLOCK_AT + 8 * k, (8 * numbers, count)), 8) for k in range(numbers)]
    shape = MemoryObjectShape("s0", "vel", BLOCK_AT, 8 * numbers * count)
    derived = derive_structure(shape, accesses, Declared("double", 8, (), (), 8))
    assert derived.structure.element_bytes == 8
    assert derived.steps == steps
    assert (f"in steps of {steps}" in (derived.note or "")) == (steps > 1)
    verdict = doubt_steps(Verdict("keep", None, None, "no-rule-applies", "Keep it."), (derived,))
    assert verdict.reason == ("records-unclear" if steps > 1 else "no-rule-applies")


@pytest.mark.parametrize(("link", "dims"), [("node *", 1), ("double *", 2)])
def test_records_that_lead_to_each_other_have_no_rows(link: str, dims: int) -> None:
    """earcut: of the nodes of a ring, in the order of a curve, 99 in a row were taken for a row of a grid."""
    kind = Declared("node", 72, (Member("x", 0, 8, "double"), Member("next", 8, 8, link)), (), 72)
    found = derive_structure(MemoryObjectShape("s0", "nodes", 0, 990 * 72), [Access(stream(0, (7128, 9), (72, 4)), 8)], kind)
    assert len(found.structure.dims) == dims
    assert found.structure.element_bytes == 72
