"""The tables of where accesses to fields come from: regions, phases of the folded order, threads."""

from __future__ import annotations

import msgspec

from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import Batch, HotspotReport
from layout_advise.reports.model.plan import OrderStep, ProgramPlan, RegionOrderReport
from layout_advise.reports.model.structure import FieldUse, StructureReport, ThreadUse
from layout_advise.reports.pages import html
from layout_advise.reports.pages.field_heat import HeatTable, entries, field_heat, phases
from tests.support.sample_report import report

DENSITY, DRIFT, PRINT = (OrderStep(name) for name in ("density", "drift", "print"))


def structure(**uses: tuple[int, int]) -> StructureReport:
    fields = tuple(FieldUse(name, "double", 8 * k, 8, *use) for k, (name, use) in enumerate(uses.items()) if any(use))
    return msgspec.structs.replace(report().hotspots[0].structures[0], fields=fields)


def region(name: str, calls: int, **uses: tuple[int, int]) -> HotspotReport:
    return msgspec.structs.replace(
        report().hotspots[0], symbol=name, name=name, calls=calls, structures=(structure(**uses),), candidates=()
    )


DENSE = region("density", 500, x=(10, 0), v=(0, 0), m=(10, 10))
DRIFTS = region("drift", 1000, x=(10, 10), v=(5, 0))


def told(*regions: HotspotReport, order: tuple[OrderStep, ...] = ()) -> Report:
    plan = ProgramPlan(RegionOrderReport("so", order), ()) if order else None
    return msgspec.structs.replace(report(), hotspots=regions, plan=plan)


def tables(whole: Report, number: int = 0) -> dict[str, HeatTable]:
    hotspot = whole.hotspots[number]
    return {table.title: table for table in field_heat(whole, hotspot, hotspot.structures[0])}


def cells(table: HeatTable) -> dict[str, list[tuple[str, str]]]:
    return {name: [(cell.reads, cell.writes) for cell in row] for name, row in table.rows}


def test_regions_of_the_same_memory_are_columns() -> None:
    whole = told(DENSE, DRIFTS)
    (table,) = tables(whole).values()
    assert table.heads == ("density", "drift")
    assert cells(table) == {
        "x": [("5 000", "0"), ("10 000", "10 000")],
        "v": [("0", "0"), ("5 000", "0")],
        "m": [("5 000", "5 000"), ("0", "0")],
    }
    assert [cell.heat for cell in table.rows[0][1]] == [11, 45]
    assert tables(whole, 1) == {}  # told once, with the first
    other = msgspec.structs.replace(DRIFTS.structures[0], base="0x7fff00000000")
    assert tables(told(DENSE, msgspec.structs.replace(DRIFTS, structures=(other,)))) == {}
    assert tables(told(DENSE)) == {}


def test_a_batch_counts_as_its_calls() -> None:
    batched = msgspec.structs.replace(DENSE, batch=Batch(10, 1.0, 1.0, 1.0))
    assert cells(tables(told(batched, DRIFTS))["By region"])["x"][0] == ("500", "0")


def test_phases_are_the_outermost_parts_of_the_folded_order() -> None:
    loop = OrderStep(turns=250, body=(DENSITY, OrderStep(turns=2, body=(DRIFT,))))
    assert phases((loop,)) == (loop.body, 250)
    assert phases((DENSITY, loop)) == ((DENSITY, loop), 1)
    assert phases((OrderStep(turns=9, body=(DRIFT,)),)) == ((), 1)
    assert entries(loop) == {"density": 250, "drift": 500}
    whole = told(DENSE, DRIFTS, order=(OrderStep(turns=250, body=(DENSITY,)), loop, PRINT))
    table = tables(whole)["By phase"]
    assert table.heads == ("density×250", "for 250 { density; drift×2 }")  # what does not use it is no phase
    assert cells(table)["x"] == [("2 500", "0"), ("7 500", "5 000")]
    assert "These are the phases" not in tables(whole)["By region"].note


def test_phases_that_are_the_regions_are_told_once() -> None:
    loop = OrderStep(turns=500, body=(DENSITY, OrderStep(turns=2, body=(DRIFT,)), PRINT))
    found = tables(told(DENSE, DRIFTS, order=(loop,)))
    assert list(found) == ["By region"]
    assert "These are the phases of the program, too." in found["By region"].note


def test_threads_are_columns_where_there_are_several() -> None:
    shared = (ThreadUse(0, 6, 0), ThreadUse(1, 4, 0))
    fields = tuple(msgspec.structs.replace(f, threads=shared) for f in DENSE.structures[0].fields)
    parallel = msgspec.structs.replace(DENSE, structures=(msgspec.structs.replace(DENSE.structures[0], fields=fields),))
    table = tables(told(parallel))["By thread"]
    assert table.heads == ("thread 0", "thread 1")
    assert cells(table) == {"x": [("6", "0"), ("4", "0")], "m": [("6", "0"), ("4", "0")]}
    page = html.render(told(parallel))
    assert "Where its fields are used: by thread</summary>" in page
    assert '<td class="num heat" style="--heat: 45%">6 / 0</td>' in page
    assert "Where its fields are used" not in html.render(told(DENSE))


def test_many_columns_are_cut_and_that_is_told() -> None:
    whole = told(*(msgspec.structs.replace(DENSE, name=f"r{k}") for k in range(20)))
    table = tables(whole)["By region"]
    assert (len(table.heads), table.more) == (12, 8)
    assert "8 more columns in report.json" in html.render(whole)
