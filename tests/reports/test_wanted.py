"""From a report to the layout to write."""

from __future__ import annotations

import msgspec
import pytest

from layout_advise.errors import SourceError
from layout_advise.reports.model.candidate import CandidateReport, Interval, PartReport
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.wanted import WantedRecord, chosen, shown_record, wanted
from layout_advise.reports.model.wanted_arrays import WantedArray, WantedStart, shown_array
from tests.support.sample_report import candidate, report

GAIN = Interval(2.0, 1.9, 2.1, 9)


def with_candidates(*candidates: CandidateReport) -> Report:
    """The sample report, which advises c1."""
    base = report()
    return msgspec.structs.replace(base, hotspots=(msgspec.structs.replace(base.hotspots[0], candidates=candidates),))


def split(number: int, speedup: Interval, *arrays: tuple[str, ...], **changes: object) -> CandidateReport:
    names = tuple(name for array in arrays for name in array)
    return candidate(number, speedup, **{"arrays": arrays, "parts": (PartReport("s0", names, 8, "A_1000"),), **changes})


def test_the_advised_one() -> None:
    found = wanted(with_candidates(split(2, GAIN, ("y",)), split(1, GAIN, ("x", "z"), ("y",))), None)
    assert (found.candidate.id, found.note) == ("c1", "")
    assert found.records == (WantedRecord("struct particle", (("x", "z"), ("y",))),)


def test_one_that_the_source_refuses_is_left_out() -> None:
    report = with_candidates(split(1, GAIN, ("x",)), split(2, Interval(1.2, 1.1, 1.3, 9), ("y",)))
    found = wanted(report, None, {"c1": "2 places"})
    assert found.candidate.id == "c2"
    assert found.note == "the advised c1 cannot be written (2 places); of those that can be, this one surely gains most"
    with pytest.raises(SourceError, match="no layout to apply"):
        wanted(report, None, {"c1": "2 places", "c2": "3 places"})


def test_an_order_of_members_is_kept() -> None:
    """By falling size, so that there are no holes: other layouts keep the order of the declaration."""
    one = split(1, GAIN, ("z", "x", "y"), families=("reorder", "compact"))
    assert wanted(with_candidates(one), None).records == (WantedRecord("struct particle", (("z", "x", "y"),), (), True),)


def test_a_member_of_which_each_number_gets_an_array() -> None:
    (record,) = wanted(with_candidates(split(1, GAIN, ("x[0]",), ("y",), ("x[1]",))), "c1").records
    assert (record.groups, record.apart) == ((("x",), ("y",)), ("x",))
    assert shown_record(record) == "each of x | y | the rest"


def test_nodes_that_are_allocated_one_by_one() -> None:
    one = split(1, GAIN, ("x",), ("y",), families=("gather", "soa", "compact"))
    base = with_candidates(one)
    (hotspot,) = base.hotspots
    with pytest.raises(SourceError, match="family gather"):
        wanted(base, "c1")
    apart = tuple(msgspec.structs.replace(structure, single=True) for structure in hotspot.structures)
    told = msgspec.structs.replace(base, hotspots=(msgspec.structs.replace(hotspot, structures=apart),))
    (record,) = wanted(told, None).records
    assert record.pooled
    assert shown_record(record) == "x | y | the rest; in a pool"


def padded(text: str, **changes: object) -> CandidateReport:
    parts = (PartReport("s0", ("x", "y"), 8, "A_1000", text),)
    return split(1, GAIN, ("x", "y"), parts=parts, **{"families": ("pad",), **changes})


def test_elements_get_more_bytes() -> None:
    (record,) = wanted(with_candidates(padded("byte = 64*i + 8*f of p; f: 0 x, 1 y; i < 1000")), None).records
    assert record.padded == 64
    assert shown_record(record) == "x, y in 64 bytes"


@pytest.mark.parametrize("text", ["byte = 64*i + 8*j of p; i < 5; j < 9", "", "byte = 64*(i // 8) of p"])
def test_padding_that_cannot_be_written(text: str) -> None:
    with pytest.raises(SourceError, match="padding of this form"):
        wanted(with_candidates(padded(text)), "c1")


def test_the_best_one_that_can_be_written() -> None:
    apart = split(1, Interval(4.0, 3.9, 4.1, 9), ("x",), classes=2)
    slow, quick = split(2, Interval(1.5, 1.4, 1.6, 9), ("x",)), split(3, GAIN, ("x",), ("y",))
    blocks = split(4, Interval(3.0, 2.9, 3.1, 9), ("x", "y"), block=8, families=("aosoa",))
    found = wanted(with_candidates(apart, slow, quick, blocks), None)
    assert found.candidate.id == "c3"
    assert found.note.startswith("the advised c1 cannot be written (elements stored by class cannot be written yet)")


def test_the_advised_layout_with_its_loop_as_it_is_comes_first() -> None:
    """The first screen advised a structure of arrays, and named the command for a split one."""
    fast, plain = split(1, Interval(8.0, 7.9, 8.1, 9), ("x",), id="c1-simd", variant="simd"), split(1, GAIN, ("x",))
    (hotspot,) = with_candidates(fast, plain, split(2, Interval(6.0, 5.9, 6.1, 9), ("y",))).hotspots
    verdict = msgspec.structs.replace(hotspot.verdict, candidate="c1-simd")
    found = chosen(msgspec.structs.replace(hotspot, verdict=verdict))
    assert found is not None
    assert found.candidate.id == "c1"
    assert found.note.startswith("the layout of c1-simd, with the loop as it is (its gain needs loops in another form")
    assert not found.instead


def in_blocks(*maps: str, **changes: object) -> CandidateReport:
    """The advised one, of an array for each map."""
    names = tuple((f"a{k}", f"b{k}") for k in range(len(maps)))
    parts = tuple(PartReport("s0", names[k], 8, "A_1000", text) for k, text in enumerate(maps))
    return split(1, GAIN, *names, parts=parts, **{"block": 8, "families": ("aosoa", "compact"), **changes})


def test_blocks() -> None:
    one = in_blocks("byte = 128*(i // 8) + 64*f + 8*(i % 8) of p_a_b; f: 0 a, 1 b; i < 1000", "byte = 16*i + 8*f of p_c")
    (record,) = wanted(with_candidates(one), None).records
    assert (record.groups, record.blocks) == ((("a0", "b0"), ("a1", "b1")), (8, 0))
    assert shown_record(record) == "a0, b0 in blocks of 8 | a1, b1 | the rest"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("byte = 64*(j // 8) of p; i < 5; j < 1000", "blocks of this form"),
        ("", "blocks of this form"),
        ("byte = 8*i of p; i < 1000", "its blocks are of one member each"),
    ],
)
def test_blocks_that_cannot_be_written(text: str, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        wanted(with_candidates(in_blocks(text)), "c1")


def test_blocks_of_two_lengths_in_one_array() -> None:
    parts = tuple(PartReport("s0", (name,), 8, "A", f"byte = 64*(i // {n}) of p; i < 9") for name, n in (("x", 4), ("y", 8)))
    with pytest.raises(SourceError, match="blocks of this form"):
        wanted(with_candidates(split(1, GAIN, ("x", "y"), parts=parts, block=8, families=("aosoa",))), "c1")


def test_none_that_gains() -> None:
    apart = split(1, Interval(4.0, 3.9, 4.1, 9), ("x",), classes=2)
    with pytest.raises(SourceError, match="no measured candidate that gains and can be written"):
        wanted(with_candidates(apart, split(2, Interval(1.0, 0.9, 1.1, 9), ("x",))), None)


def test_parts_of_a_member_come_together() -> None:
    one = split(1, GAIN, ("x[0]", "x[1]", "v"), ("at[0].re",), ("m",))
    assert wanted(with_candidates(one), "c1").records[0].groups == (("x", "v"), ("at",), ("m",))


def test_what_would_not_be_the_layout_that_was_measured() -> None:
    for arrays in ((("x[0]", "y"), ("x[1]",)), (("x[0].re",), ("x[0].im",))):
        with pytest.raises(SourceError, match="member x would be taken apart in part"):
            wanted(with_candidates(split(1, GAIN, *arrays)), "c1")
    with pytest.raises(SourceError, match=r"its gain needs loops in another form \(simd\)"):
        wanted(with_candidates(split(1, GAIN, ("x",), variant="simd")), "c1")
    with pytest.raises(SourceError, match="declared not to overlap"):
        wanted(with_candidates(split(1, GAIN, ("x",), variant="restrict")), "c1")
    same = split(1, GAIN, ("x",), variant="simd", same_code_as="plain")
    assert wanted(with_candidates(same), "c1").candidate.variant == "simd"


def turned(index_map: str, **changes: object) -> Report:
    """A report that advises an array of doubles in another order, with that map."""
    part = PartReport("s0", ("value",), 8, "A_700 ⊗ A_1200", index_map)
    base = with_candidates(candidate(1, GAIN, parts=(part,), families=("permute",), **changes))
    (hotspot,) = base.hotspots
    (structure, *others) = hotspot.structures
    plain = msgspec.structs.replace(structure, name="grid", type="double", fields=structure.fields[:1])
    return msgspec.structs.replace(base, hotspots=(msgspec.structs.replace(hotspot, structures=(plain, *others)),))


def test_an_array_with_its_dimensions_in_another_order() -> None:
    found = wanted(turned("byte = 9600*j + 8*i of grid_value; i < 1200; j < 700"), "c1")
    assert (found.records, found.arrays) == ((), (WantedArray("grid", (1200, 700), (1, 0)),))
    assert shown_array(found.arrays[0]) == "grid[j][i] for grid[i][j]"
    found = wanted(turned("byte = 12*i + 3*k + j of grid_value; i < 5; j < 3; k < 4"), "c1")
    assert found.arrays == (WantedArray("grid", (5, 3, 4), (0, 2, 1)),)


@pytest.mark.parametrize(
    "index_map", ["byte = 8*(i // 2) + 4*(i % 2) of grid_value; i < 8", "", "byte = 8*i of a; i < 4; j < 3"]
)
def test_other_maps_of_an_array_are_not_written(index_map: str) -> None:
    with pytest.raises(SourceError, match="no array of numbers with its dimensions in another order"):
        wanted(turned(index_map), "c1")


def test_loops_in_another_form_are_not_written() -> None:
    with pytest.raises(SourceError, match="its gain needs loops in another form"):
        wanted(turned("byte = 9600*j + 8*i of grid_value; i < 1200; j < 700", variant="simd"), "c1")


def test_where_an_array_begins() -> None:
    base = with_candidates(candidate(1, GAIN, families=("align",)))
    (hotspot,) = base.hotspots

    def placed(**changes: object) -> Report:
        (structure,) = hotspot.structures
        other = msgspec.structs.replace(structure, **changes)
        return msgspec.structs.replace(base, hotspots=(msgspec.structs.replace(hotspot, structures=(other,)),))

    assert wanted(placed(kind="global", name="g::all"), None).arrays == (WantedStart("g::all"),)
    (array,) = wanted(placed(kind="heap", name="p", alloc_site="app.c:7"), None).arrays
    assert array == WantedStart("p", "app.c:7")
    assert shown_array(array) == "p, allocated at app.c:7, from the start of a cache line on"
    with pytest.raises(SourceError, match="not known where p is allocated"):
        wanted(placed(kind="heap", name="p", alloc_site=None), "c1")
