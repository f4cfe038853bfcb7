"""Builds held against a guard: those that keep the layout raise no alarm, an exchange of two members does."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.guard.check import moved
from layout_advise.guard.from_run import written
from layout_advise.guard.guard_file import Guard, guard_text, read_guard
from layout_advise.tracer.program.binary import ElfBinary
from tests.support.changed.guarded_programs import MEMBERS, Build, exchanged, item_report, source, unchanged

FAST = 6
ALL = [*range(FAST), *(pytest.param(n, marks=pytest.mark.slow) for n in range(FAST, 50))]


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    """That of the program as it is, written and read back."""
    folder = tmp_path_factory.mktemp("guard")
    program = Build(source(), ("gcc", "-g", "-O2")).compiled(folder, "first")
    made = written(item_report(program), ElfBinary.open_module(program))
    assert made.left_out == ()
    (folder / "layout.guard").write_text(guard_text(made.guard))
    assert read_guard(folder / "layout.guard") == made.guard
    return made.guard


@pytest.mark.parametrize("number", ALL)
def test_rebuilds_raise_no_alarm(number: int, guard: Guard, tmp_path: Path) -> None:
    assert moved(guard, ElfBinary.open_module(unchanged(number).compiled(tmp_path, "again"))) == ()


@pytest.mark.parametrize("number", ALL)
def test_exchanged_members_raise_an_alarm(number: int, guard: Guard, tmp_path: Path) -> None:
    build, names = exchanged(number)
    found = {
        one.what.split(".")[1].removesuffix("[]")
        for one in moved(guard, ElfBinary.open_module(build.compiled(tmp_path, "other")))
        if "." in one.what
    }
    assert found & set(names)


def one_change(guard: Guard, folder: Path, old: str, new: str) -> list[str]:
    text = source().replace(old, new)
    assert text != source()
    found = moved(guard, ElfBinary.open_module(Build(text, ("gcc", "-g", "-O1")).compiled(folder, "changed")))
    return [f"{one.what} {one.how}" for one in found]


def test_what_moved_is_told(guard: Guard, tmp_path: Path) -> None:
    assert one_change(guard, tmp_path, "double x;\n  double y", "double y;\n  double x") == [
        "item.x was at byte 0 (8 bytes), is at byte 8 (8 bytes)",
        "item.y was at byte 8 (8 bytes), is at byte 0 (8 bytes)",
    ]
    assert one_change(guard, tmp_path, "short re; short im", "short im; short re") == [
        "item.cells[].re was at byte 56 (2 bytes), is at byte 58 (2 bytes)",
        "item.cells[].im was at byte 58 (2 bytes), is at byte 56 (2 bytes)",
    ]
    assert one_change(guard, tmp_path, "low : 3", "low : 4") == [
        "item.low was at bit 640 (3 bits), is at bit 640 (4 bits)",
        "item.high was at bit 643 (9 bits), is at bit 644 (9 bits)",
    ]
    (size,) = one_change(guard, tmp_path, "double weight[4]", "double weight[4]; int more")
    assert size == "item had 120 bytes, has 128; new: more at 120"
    assert "item.vel.u was float, is int" not in one_change(guard, tmp_path, "float u, v, w", "int u; float v, w")
    assert one_change(guard, tmp_path, "struct item *next", "struct cell *next") == ["item.next was item *, is cell *"]


def test_a_renamed_member_and_a_missing_record(guard: Guard, tmp_path: Path) -> None:
    text = source([member.replace("stamp", "time") for member in MEMBERS])
    found = moved(guard, ElfBinary.open_module(Build(text, ("gcc", "-g")).compiled(tmp_path, "renamed")))
    assert [f"{one.what} {one.how}" for one in found] == ["item.stamp is gone (was at byte 40); time is in its place"]
    other = Build(source().replace("struct item", "struct thing"), ("gcc", "-g")).compiled(tmp_path, "missing")
    assert [one.how for one in moved(guard, ElfBinary.open_module(other))] == ["is gone"]
