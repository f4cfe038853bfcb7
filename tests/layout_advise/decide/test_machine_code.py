"""What the original's machine code on a layout tells of its gain, beside what a mock-up in C does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layout_advise.decide.budget import Circumstances
from layout_advise.decide.machine_code import may_tell, with_code, worth_a_look
from layout_advise.decide.policy import DECIDE
from layout_advise.decide.verdict import VerdictContext, decide, reaching
from layout_advise.measure.measured import Doubt, Measured
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.variants import (
    Variant,
    machine_code_twice,
)
from tests.support.decisions import code_times
from tests.support.variants import variants

C1, C2 = variants("c1", "c2")
TWICE = machine_code_twice("c1")
AROUND = Circumstances(None, "steady", alike=True)
CONTEXT = VerdictContext("criu", "verified", rules_apply=True)


def measured(name: Variant, speedup: float, over: float, **rest: object) -> Measured:
    """As a mock-up in C that is a third slower than the original shows it."""
    both = (Ratio(r, 0.98 * r, 1.02 * r, 9) for r in (speedup, over))
    return replace(Measured(name, "verified", *both), **rest)  # type: ignore[arg-type]


SLOW = code_times(once=1150.0, twice=1300.0)
"""Without the 150 ns that its arithmetic takes it is as fast as the original."""


def test_a_slow_form_leaves_open_what_machine_code_excludes() -> None:
    slow = measured(C1, 0.9, 1.3)
    assert decide([slow], CONTEXT).action == "undecided"
    (told,) = with_code([slow], SLOW, AROUND)
    verdict = decide([told], CONTEXT)
    assert verdict.action == "keep"
    assert "times the original's speed, by the program's own machine code in that layout" in verdict.text
    assert told.code is not None
    assert told.code.floor() == pytest.approx(1000 / 1150, rel=0.01)
    assert told.ceiling() == told.code.ceiling() == pytest.approx(1.0, rel=0.01)


def test_a_gain_in_spite_of_its_arithmetic_is_one() -> None:
    slow = measured(C1, 0.95, 1.6)
    (told,) = with_code([slow], code_times(once=800.0, twice=900.0), AROUND)
    assert decide([told], CONTEXT).action == "change"
    assert told.claim is not None
    assert told.claim.lo == pytest.approx(1.25, rel=0.01)
    assert told.claim.hi == pytest.approx(1 / 0.7, rel=0.01)
    assert [term.name for term in told.budget] == ["machine"]
    assert "done twice, 12% more" in told.budget[0].how


def test_arithmetic_that_takes_no_less_than_all_else_excludes_little() -> None:
    (told,) = with_code([measured(C1, 0.5, 1.3)], code_times(once=1000.0, twice=2100.0), AROUND)
    assert told.code is not None
    assert told.code.ceiling() == pytest.approx(DECIDE.most_without, rel=0.01)
    assert told.ceiling() == measured(C1, 0.5, 1.3).ceiling()


def test_the_unchanged_layout_reached_in_the_same_way_tells_what_addresses_take() -> None:
    """As measured (zstd): reached by arithmetic, all layouts take 1.38 times as long, and 1.46 with it done twice."""
    one = measured(C1, 0.83, 0.96, structures=frozenset({"s0"}))
    tops = []
    for moved in (None, 1370.0):
        (told,) = with_code([one], code_times(once=1380.0, twice=1460.0, moved=moved), AROUND)
        assert told.code is not None
        tops.append(told.code.ceiling())
    assert tops == pytest.approx([1 / 1.3, 1370 / 1380], rel=0.01)


def test_what_one_of_both_excludes_is_excluded() -> None:
    own = measured(C1, 0.8, 1.0)
    (told,) = with_code([own], code_times(once=1100.0, twice=1300.0), AROUND)
    assert told.floor() == pytest.approx(1 / 1.1, rel=0.01)  # its machine code
    assert told.ceiling() == own.ceiling()  # its mock-up: 1.02, where machine code leaves 1.11
    assert told.claim is not None
    assert (told.claim.lo, told.claim.hi) == (told.floor(), told.ceiling())
    assert decide([told], CONTEXT).action == "keep"
    (told,) = with_code([measured(C1, 1.0, 1.0)], code_times(once=1100.0, twice=1300.0), AROUND)
    assert told.told_by is told


def test_where_both_contradict_the_mock_up_tells() -> None:
    (told,) = with_code([measured(C1, 2.0, 2.6)], code_times(once=1000.0, twice=1010.0), AROUND)
    assert told.told_by is told


def test_vectors_and_temporary_layouts_are_told_by_their_own_times() -> None:
    slow = measured(C1, 0.9, 1.3)
    for one in (replace(slow, packed=True), replace(slow, net=Ratio(0.9, 0.88, 0.92, 9))):
        (told,) = with_code([one], SLOW, AROUND)
        assert told.told_by is told
        assert worth_a_look([one], CONTEXT) == ()


def test_what_was_not_timed_stays_as_it_is() -> None:
    both = [measured(C1, 0.9, 1.3), measured(C2, 0.9, 1.3)]
    assert with_code(both, None, AROUND) == tuple(both)
    one, other = with_code(both, SLOW, AROUND)
    assert one.told_by is not one
    assert other.told_by is other
    (alone,) = with_code(
        [both[0]], replace(SLOW, steady=[{n: t for n, t in one.items() if n != TWICE} for one in SLOW.steady]), AROUND
    )
    assert alone.told_by is alone  # how much of it is arithmetic is not known


def test_those_that_may_gain_most_come_first() -> None:
    every = [measured(Variant(f"c{k}"), 0.9, 1.0 + k / 10) for k in range(9)]
    found = worth_a_look([*every, measured(Variant("c3", "restrict"), 0.9, 1.31)], CONTEXT)
    assert found[:2] == ("c8", "c7")
    assert len(found) == DECIDE.most_machine_code


def test_it_is_asked_for_where_the_running_program_is_not_all_that_leaves_a_gain_open() -> None:
    program = Doubt("program", 0.6, 1.3, "a call takes longer there")
    excluded = replace(measured(C1, 0.9, 1.0), doubts=(program,))
    assert reaching([excluded], CONTEXT)
    assert worth_a_look([excluded], CONTEXT) == ()
    by_form = replace(measured(C2, 0.9, 1.2), doubts=(replace(program, hi=1.0),))
    assert by_form.widest == by_form.doubts[0]
    assert worth_a_look([excluded, by_form], CONTEXT) == ("c2",)


def test_a_call_that_takes_longer_in_the_program_is_a_doubt_of_machine_code_too() -> None:
    there = Circumstances(2000.0, "steady", alike=False)
    (told,) = with_code([measured(C1, 0.9, 1.3)], code_times(once=1010.0, twice=1020.0), there)
    assert told.code is not None
    (program,) = (term for term in told.code.budget if term.name == "program")
    assert program.hi == pytest.approx(2000 / 1010, rel=0.01)
    assert reaching([told], CONTEXT)


def test_it_is_timed_further_where_its_medians_leave_less_open() -> None:
    wide = measured(C1, 0.9, 1.3)
    (told,) = with_code([wide], SLOW, AROUND)
    assert may_tell(told)
    (told,) = with_code([wide], code_times(once=1000.0, twice=1700.0), AROUND)
    assert not may_tell(told)
    assert not may_tell(wide)
    assert not may_tell(replace(told, packed=True))


def test_a_better_place_of_the_code_is_no_gain_of_a_layout() -> None:
    """At its own place the original happens to be slow: its code gains anywhere else."""
    (told,) = with_code([measured(C1, 0.95, 1.6)], code_times(once=800.0, twice=850.0, elsewhere=800.0), AROUND)
    assert told.code is not None
    assert told.code.floor() == pytest.approx(1.0, rel=0.01)
    assert decide([told], CONTEXT).action == "undecided"
