"""``trace --baseline``: which layout of the run before the changed program has, what it gained, and what is left."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from layout_advise.compare.arrangement import places, recognised
from layout_advise.compare.confirm import confirmed
from layout_advise.reports.model.contract import Report, decode, encode
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.model.structure import StructureReport
from layout_advise.reports.words.headline import headline
from tests.support.changed.compared_runs import after, before, region, structure, tried

SPLIT = (structure("hot", "x v m"),)
ARRAYS = tuple(structure(f"p.{name}", "value", type="double", id=name) for name in "xvm")
BLOCK = "x[0] x[1] x[2] x[3] v[0] v[1] v[2] v[3] m[0] m[1] m[2] m[3]"
BLOCKS = (structure("p", BLOCK),)
FULL_BLOCKS = (structure("p", BLOCK, "y[0] y[1] y[2] y[3]"),)
UNCHANGED = (structure("p", "x v m", "y z"),)
REORDERED = (structure("p", "m x v", "z y"),)


def against(changed: Report, earlier: Report | None = None) -> Report:
    return confirmed(changed, earlier or before(), Path("runs/before.layout"))


@pytest.mark.parametrize(
    ("structures", "candidate", "rest"),
    [
        (SPLIT, "c1", ()),
        (BLOCKS, "c2", ()),
        (ARRAYS, "c3", ()),
        (FULL_BLOCKS, "c2", ("y",)),
        (UNCHANGED, None, ()),
        (REORDERED, None, ()),
        ((structure("hot", "x v"), structure("m", "m")), None, ()),
        ((structure("p", BLOCK.replace(" x[3]", "").replace(" v[3]", "").replace(" m[3]", "")),), None, ()),
        (ARRAYS[:2], None, ()),
        ((*SPLIT, structure("other", "x")), None, ()),
    ],
)
def test_layouts_are_recognised(
    structures: tuple[StructureReport, ...], candidate: str | None, rest: tuple[str, ...]
) -> None:
    found = recognised(region(before()).candidates, structures)
    assert (found.candidate.id if found else None) == candidate
    assert (found.rest if found else ()) == rest


def test_blocks_of_several_lengths_are_recognised_by_each() -> None:
    hot, cold = (
        structure("hot", "x[0] x[1] x[2] x[3] v[0] v[1] v[2] v[3]"),
        structure("cold", "m[0] m[1] k[0] k[1]", id="s1"),
    )
    mixed = tried("c1", 2.0, "x v | m k", 4, blocks=(4, 2))
    found = recognised([mixed], (hot, cold))
    assert found is not None
    assert found.candidate is mixed
    assert recognised([replace(mixed, blocks=(2, 4))], (hot, cold)) is None
    assert recognised([replace(mixed, blocks=())], (hot, cold)) is None  # both in blocks of four


def test_an_array_of_the_record_before_is_no_block() -> None:
    """``at[0]`` and ``at[1]`` were members before, and are members in a split."""
    found = recognised([tried("c1", 2.0, "at[0] at[1]")], (structure("hot", "at[0] at[1]"),))
    assert found is not None
    assert places((structure("hot", "at[0] at[1]"),))["at"].block == 2


def test_the_advised_layout_is_kept() -> None:
    one = region(against(after(SPLIT, 100.0)))
    assert one.baseline is not None
    assert (one.baseline.candidate, one.baseline.advised, one.baseline.left) == ("c1", True, None)
    assert one.baseline.speedup is not None
    assert one.baseline.speedup.lo <= 3.0 <= one.baseline.speedup.hi
    assert (one.verdict.action, one.verdict.reason) == ("keep", "advised-layout")
    assert one.verdict.text.startswith("Keep it: this is the layout advised in before.layout (c1: ")
    assert one.verdict.text.endswith("No layout measured there is shown to gain more.")
    assert headline(one) == ("Keep it: `particle` has the advised layout; step 3.0× as fast as in before.layout (2.9–3.0).")


def test_what_is_left_is_told() -> None:
    """Slower blocks than those that were measured: the best layout there gained more."""
    one = region(against(after(FULL_BLOCKS, 290.0)))
    assert one.baseline is not None
    assert one.baseline.left is not None
    assert one.baseline.left.lo > 2
    assert (one.verdict.action, one.baseline.advised) == ("undecided", False)
    assert "but with y in the blocks too. step runs 1.03 times as fast as there" in one.verdict.text
    assert "which is no difference. c1 there (" in one.verdict.text
    assert headline(one).startswith("Undecided: `particle` has the tried (c2) layout; step 1.03× as fast")


def test_a_tied_layout_is_an_advised_one() -> None:
    assert region(against(after(BLOCKS, 100.0))).verdict.reason == "advised-layout"


@pytest.mark.parametrize("structures", [UNCHANGED, REORDERED])
def test_a_program_of_the_layout_before_is_not_kept(structures: tuple[StructureReport, ...]) -> None:
    one = region(against(after(structures, 100.0)))
    assert one.verdict.action == "undecided"
    assert "This is none of the layouts tried in before.layout." in one.verdict.text


def test_verdicts_that_tell_something_stay() -> None:
    own = Verdict("change", "c9", 1.5, "measured-gain", "Change it again.")
    changed = after(SPLIT, 100.0)
    one = region(against(replace(changed, hotspots=(replace(region(changed), verdict=own),))))
    assert (one.verdict.action, one.verdict.candidate) == ("change", "c9")
    assert one.verdict.text.startswith("Change it again. This is the layout advised in before.layout")


def test_times_of_other_work_are_not_compared() -> None:
    one = region(against(replace(after(SPLIT, 100.0), command=("./app", "9"))))
    assert one.verdict.action == "undecided"
    assert one.baseline is not None
    assert (one.baseline.speedup, one.baseline.reason) == (None, "the runs had other arguments")
    assert "Not compared with the run before: the runs had other arguments." in one.verdict.text


def test_another_region_is_left_alone() -> None:
    changed = after(SPLIT, 100.0, symbol="walk", file="other.c")
    assert against(changed) == changed


def test_the_report_carries_it() -> None:
    found = against(after(SPLIT, 100.0))
    assert decode(encode(found)) == found
