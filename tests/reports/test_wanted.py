"""From a report to the layout to write."""

from __future__ import annotations

import msgspec
import pytest

from layout_advise.errors import SourceError
from layout_advise.reports.model.candidate import CandidateReport, Interval, PartReport
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.wanted import WantedRecord, wanted
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


def test_the_best_one_that_can_be_written() -> None:
    blocks = split(1, Interval(4.0, 3.9, 4.1, 9), ("x",), block=8, families=("aosoa",))
    slow, quick = split(2, Interval(1.5, 1.4, 1.6, 9), ("x",)), split(3, GAIN, ("x",), ("y",))
    found = wanted(with_candidates(blocks, slow, quick), None)
    assert found.candidate.id == "c3"
    assert found.note.startswith("the advised c1 cannot be written (blocks of 8 elements cannot be written yet)")


def test_none_that_gains() -> None:
    blocks = split(1, Interval(4.0, 3.9, 4.1, 9), ("x",), block=8)
    with pytest.raises(SourceError, match="no measured candidate that gains and can be written"):
        wanted(with_candidates(blocks, split(2, Interval(1.0, 0.9, 1.1, 9), ("x",))), None)


def test_parts_of_a_member_come_together() -> None:
    one = split(1, GAIN, ("x[0]", "x[1]", "v"), ("at[0].re",), ("m",))
    assert wanted(with_candidates(one), "c1").records[0].groups == (("x", "v"), ("at",), ("m",))


def test_what_would_not_be_the_layout_that_was_measured() -> None:
    apart = split(1, GAIN, ("x[0]",), ("x[1]",))
    with pytest.raises(SourceError, match="member x would be taken apart"):
        wanted(with_candidates(apart), "c1")
    with pytest.raises(SourceError, match=r"its gain needs loops in another form \(simd\)"):
        wanted(with_candidates(split(1, GAIN, ("x",), variant="simd")), "c1")
    same = split(1, GAIN, ("x",), variant="simd", same_code_as="plain")
    assert wanted(with_candidates(same), "c1").candidate.variant == "simd"
