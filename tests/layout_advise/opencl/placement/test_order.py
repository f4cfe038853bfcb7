"""Regions and structures of what a host program does with its buffers."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.errors import ProgramError
from layout_advise.opencl.intercept.events import BufferEvent, read_events
from layout_advise.opencl.placement.order import buffer_uses, kernel_order, of_one, united
from layout_advise.opencl.source.read import read_program
from layout_advise.plan.placed import Use
from tests.support.opencl.kernels import forces_launch

CHANGES: tuple[Use, ...] = ("changed",)
PING_PONG: tuple[Use, ...] = ("read", "changed")


def written(folder: Path, text: str) -> tuple[BufferEvent, ...] | None:
    (folder / "order").write_text(text)
    return read_events(folder / "order")


def test_kernels_on_other_buffers_are_other_regions(tmp_path: Path) -> None:
    turns = "k 0 0 1\nk 0 1 0\n" * 10
    order = kernel_order(written(tmp_path, f"w 0\nn 1\n{turns}r 0\n"), [0], [PING_PONG])
    launch = forces_launch()
    assert order.text([launch]) == "host; for 10 { forces; forces }; host"
    assert [dict(region.uses) for region in order.regions] == [
        {0: "overwritten"},
        {0: "read", 1: "changed"},
        {1: "read", 0: "changed"},
        {0: "read"},
    ]
    assert [one.buffers for one in order.structures] == [(((0, 0),),), (((0, 1),),)]


def test_buffers_of_the_same_uses_are_one_structure(tmp_path: Path) -> None:
    text = "w 5\nw 6\nw 7\nw 9\n" + "k 0 5 6 7\n" * 4 + "r 5\nr 6\n"
    order = kernel_order(written(tmp_path, text), [0], [("changed", "changed", "read")])
    assert [len(one.buffers) for one in order.structures] == [2, 1]  # what no kernel uses is none
    (whole,) = united(order).structures
    assert len(whole.buffers) == 3
    assert [dict(region.uses) for region in united(order).regions] == [{0: "overwritten"}, {0: "changed"}, {0: "read"}]


def test_what_the_host_does_between_launches_is_one_region(tmp_path: Path) -> None:
    order = kernel_order(written(tmp_path, "w 0\n" + "k 0 0\nr 0\nc 0\n" * 5), [0], [CHANGES])
    uses = [dict(region.uses) for region in order.regions if region.launch is None]
    assert uses == [{0: "overwritten"}, {0: "changed"}]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("w 0\nk 0 0\no\n", "in ways that are not followed"),
        ("w 0\nk 0 0\nmore\n", "in ways that are not followed"),
        ("w 0\nk 0 0\nk 1 0\n", "was not looked at"),
        ("w 0\nk 2 0\n", "was not looked at"),
        ("w 0\nk 0 0 0 3\n", "was not looked at"),
        ("".join(f"w {n}\nk 0 {n}\nr {n}\n" for n in range(150)), "other buffers all the time"),
    ],
)
def test_no_plan_is_told(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=why):
        kernel_order(written(tmp_path, text), [0, None], [CHANGES])


def test_a_program_without_an_order_has_no_plan(tmp_path: Path) -> None:
    assert read_events(tmp_path / "nowhere") is None
    with pytest.raises(ProgramError, match="no plan over devices"):
        kernel_order(None, [0], [CHANGES])


def test_a_launch_by_itself() -> None:
    launch = forces_launch()
    uses = buffer_uses(read_program(launch.source), launch)
    assert uses == ("changed", "read")  # the second one by a pointer to constants
    order = kernel_order(of_one(launch), [0], [uses])
    assert order.text([launch]) == "host; forces; host"


def test_a_constant_pointer_may_be_written_through() -> None:
    launch = forces_launch()
    source = launch.source.replace("__global Body *b", "__global Body *const b")
    assert buffer_uses(read_program(source), launch) == ("changed", "read")
