"""The list of passes: its order, its verifier, and that what the forms share is computed once."""

from __future__ import annotations

from collections import Counter

import pytest

from layout_advise.errors import InvalidFormError
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.lifted import Goto, Lifted
from layout_advise.mockup.rewrite import passes
from layout_advise.mockup.rewrite.passes import PASSES, rewrite, run_passes
from layout_advise.mockup.rewrite.unroll_field_loops import unroll_field_loops
from tests.support.mockups.native import NO_EVIDENCE

EMPTY = Lifted("f", 0x1000, (), (), ())


def test_loops_over_fields_are_written_out_before_loops_are_rerolled() -> None:
    assert [one.__name__ for one in PASSES] == [
        "hoist_pointer_loads",
        "reload_carried_values",
        "whole_fields",
        "unroll_field_loops",
        "stop_behind_loops",
        "reroll",
        "sink_operations",
    ]


def test_a_pass_that_leaves_an_invalid_form_is_named() -> None:
    def jump_nowhere(lifted: Lifted, evidence: Evidence) -> Lifted:
        return Lifted(lifted.symbol, lifted.entry, (), (), (Goto(1, None),))

    with pytest.raises(InvalidFormError, match="not valid after jump_nowhere"):
        run_passes(EMPTY, NO_EVIDENCE, (*PASSES, jump_nowhere), verify=True)
    assert run_passes(EMPTY, NO_EVIDENCE, (jump_nowhere,)).body == (Goto(1, None),)


def test_every_pass_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: Counter[str] = Counter()

    def counted(one: passes.Pass) -> passes.Pass:
        def run(lifted: Lifted, evidence: Evidence) -> Lifted:
            ran[one.__name__] += 1
            return one(lifted, evidence)

        run.__name__ = one.__name__
        return run

    unroll = counted(unroll_field_loops)
    monkeypatch.setattr(passes, "unroll_field_loops", unroll)
    monkeypatch.setattr(passes, "SOURCE_PASSES", tuple(map(counted, passes.SOURCE_PASSES)))
    monkeypatch.setattr(passes, "LOOP_PASSES", (unroll, *map(counted, passes.LOOP_PASSES[1:])))
    assert rewrite(EMPTY, NO_EVIDENCE).elements == EMPTY
    assert ran == dict.fromkeys((one.__name__ for one in PASSES), 1)
