"""Limits are named numbers, and the report carries all of them."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from pathlib import Path

import layout_advise
from layout_advise.policies import policies

ROOT = Path(layout_advise.__file__).parent
STAGES = ("choose", "observe", "propose", "build", "verify", "measure", "decide", "describe")
TIMING = ROOT / "mockup" / "timing" / "policy.py"


def test_the_report_carries_the_limits_of_every_stage() -> None:
    carried, found = policies(), 0
    for path in {*(p for room in STAGES if (p := ROOT / room / "policy.py").exists()), TIMING}:
        module = import_module("layout_advise." + ".".join(path.relative_to(ROOT).with_suffix("").parts))
        (policy,) = (value for name, value in vars(module).items() if name.isupper())
        limits = {each.name: getattr(policy, each.name) for each in fields(policy)}
        assert limits in carried.values(), path
        assert all(each.metadata["unit"] and each.metadata["meaning"].endswith((".", " ...")) for each in fields(policy)), (
            path
        )
        found += 1
    assert found == len(carried)


def test_every_decision_named_is_written_down() -> None:
    written = {int(path.name[:4]) for path in (ROOT.parent / "docs" / "decisions").glob("0*.md")}
    for path in {*(p for room in STAGES if (p := ROOT / room / "policy.py").exists()), TIMING}:
        module = import_module("layout_advise." + ".".join(path.relative_to(ROOT).with_suffix("").parts))
        (policy,) = (value for name, value in vars(module).items() if name.isupper())
        assert {each.metadata["decision"] for each in fields(policy)} - {None} <= written, path
