"""One plan over two devices of PoCL, by the command; and plans of given times."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from layout_advise.opencl.host.launch import BufferArgument, Launch
from layout_advise.opencl.intercept.events import BufferEvent
from layout_advise.opencl.measure.jobs import BufferMove, DeviceName, VariantOutcome
from layout_advise.opencl.measure.verify import Compared
from layout_advise.opencl.placement import planned
from layout_advise.opencl.placement.measured import PlacedProgram, RoundTimes
from layout_advise.opencl.rewrite.layouts import layout
from layout_advise.opencl.source.read import read_program
from layout_advise.reports.model.kernels import DevicePlan, decode_opencl
from tests.support.opencl.kernels import device

SOURCE = """
typedef struct { float a, b; } item;
__kernel void first(__global item *p) { p[get_global_id(0)].a += 1; }
__kernel void second(__global item *p) { p[get_global_id(0)].b += 1; }
"""
SLOW, FAST = DeviceName("P", "slow"), DeviceName("P", "fast")


def launch(kernel: str) -> Launch:
    return Launch(SOURCE, "", kernel, (BufferArgument(0),), (np.zeros(64, np.uint8),), (8,))


def outcome(first: float, second: float, move: BufferMove) -> VariantOutcome:
    return VariantOutcome(0, 0, compared=Compared(64, 8, ""), walls=(first, second), moves=((move,), (move,)))


def plan_of(
    times: dict[tuple[str, str], tuple[float, float]], sent: float, turns: int, monkeypatch: pytest.MonkeyPatch
) -> DevicePlan:
    """The plan where ``times`` has those of both kernels by device and layout; a transfer takes ``sent`` each way, a
    conversion one."""
    program = read_program(SOURCE)
    choice = (layout(program.records[0], ((0,), (1,)), (1, 1)),)
    own = PlacedProgram(program, (0, 1), (launch("first"), launch("second")), (choice,))

    def rounds(devices: Sequence[DeviceName], *_rest: object) -> list[RoundTimes]:
        found = {
            (d, 0): (
                outcome(*times[one.name, "as it is"], BufferMove(sent, sent)),
                outcome(*times[one.name, "arrays"], BufferMove(sent, sent, 1.0, 1.0, 2.0, 2.0)),
            )
            for d, one in enumerate(devices)
        }
        return [RoundTimes(found)] * 3

    monkeypatch.setattr(planned, "measured_rounds", rounds)
    loop = [BufferEvent("launch", (0,), 0), BufferEvent("launch", (0,), 1)] * turns
    events = [BufferEvent("overwritten", (0,)), *loop, BufferEvent("read", (0,))]
    return planned.device_plan(events, (0, 1), [own], [SLOW, FAST], 3, lambda _text: None)


def placed(plan: DevicePlan) -> dict[str, tuple[str, str]]:
    return {one.name: (one.device, one.layout) for one in plan.kernels}


def test_each_kernel_goes_to_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {
        ("slow", "as it is"): (10.0, 90.0),
        ("slow", "arrays"): (10.0, 90.0),
        ("fast", "as it is"): (90.0, 10.0),
        ("fast", "arrays"): (90.0, 10.0),
    }
    plan = plan_of(times, 2.0, 20, monkeypatch)
    assert placed(plan) == {"first": ("slow", "as it is"), "second": ("fast", "as it is")}
    assert plan.order == "host; for 20 { first; second }; host"
    # the host sends and fetches; between the devices a copy is fetched and sent 39 times
    assert (plan.ns, plan.moving_ns) == (20 * 20 + 4 + 39 * 4, 4 + 39 * 4)
    assert {one.label: one.ns for one in plan.others}["all on slow, as it is"] == 2004
    assert plan.changes
    assert "first on slow (as it is); second on fast (as it is)" in plan.text
    stay = plan_of(times, 60.0, 20, monkeypatch)
    assert len({device for device, _ in placed(stay).values()}) == 1
    assert not stay.changes
    assert "other devices gain nothing" in stay.text


def test_layouts_and_devices_are_chosen_together(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {
        ("slow", "as it is"): (30.0, 30.0),
        ("slow", "arrays"): (29.0, 29.0),
        ("fast", "as it is"): (40.0, 40.0),
        ("fast", "arrays"): (10.0, 10.0),
    }
    plan = plan_of(times, 5.0, 10, monkeypatch)
    assert set(placed(plan).values()) == {("fast", "structure of arrays")}
    assert plan.ns == 20 * 10 + 2 * 5 + 2  # there and back, each with a conversion
    few = plan_of({**times, ("fast", "arrays"): (39.5, 39.5)}, 0.0, 1, monkeypatch)
    assert set(placed(few).values()) == {("slow", "as it is")}  # two conversions cost what the layout gains


def test_a_layout_that_computes_something_else_is_in_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = VariantOutcome(0, 0, compared=Compared(64, 8, "other bytes"), walls=(0.1, 0.1), moves=((BufferMove(0, 0),),) * 2)
    right = outcome(5.0, 5.0, BufferMove(1.0, 1.0))
    monkeypatch.setattr(planned, "measured_rounds", lambda *_: [RoundTimes({(0, 0): (right, wrong)})])
    program = read_program(SOURCE)
    choice = (layout(program.records[0], ((0,), (1,)), (1, 1)),)
    own = PlacedProgram(program, (0, 1), (launch("first"), launch("second")), (choice,))
    events = [BufferEvent("overwritten", (0,)), BufferEvent("launch", (0,), 0), BufferEvent("launch", (0,), 1)]
    plan = planned.device_plan(events, (0, 1), [own], [SLOW], 1, lambda _text: None)
    assert set(placed(plan).values()) == {("slow", "as it is")}


@pytest.mark.slow
def test_the_command_plans_over_two_devices(tmp_path: Path) -> None:
    device()
    (tmp_path / "k.cl").write_text(SOURCE)
    (tmp_path / "args.toml").write_text(
        'kernel = "first"\nglobal = 64\nlocal = 16\ncalls = 3\n[[args]]\nbuffer = "b"\ncount = 64\n'
    )
    words = [
        "opencl",
        "--plan",
        "--kernel",
        "k.cl",
        "--spec",
        "args.toml",
        "--processes",
        "1",
        "--json",
        "r.json",
        "-o",
        "r.html",
    ]
    command = [sys.executable, "-m", "layout_advise", *words]
    environment = {**os.environ, "POCL_DEVICES": "pthread basic"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = decode_opencl((tmp_path / "r.json").read_bytes())
    names = {one.name for one in report.programs[0].devices}
    assert report.plan is not None
    (own,) = report.plan.kernels
    assert (own.name, own.launches) == ("first", 3)
    assert own.device in names
    assert report.plan.order == "host; first×3; host"
    if len(names) > 1:  # another platform than PoCL may have one device only
        assert {one.label for one in report.plan.others} >= {f"all on {name}, as it is" for name in names}
    assert min(one.ns for one in report.plan.others) > 0
    assert report.plan.text in done.stdout
    assert "One plan over all devices" in (tmp_path / "r.html").read_text()
