"""The kernels written by hand, against which the tool's are held: each has the layout that is told of it, and leaves what
the example leaves. The benchmark's own reading of them is used."""

from __future__ import annotations

from types import ModuleType

import pytest

from layout_advise.opencl.measure.jobs import KernelJob, name_of
from layout_advise.opencl.measure.processes import in_fresh_process
from tests.support.benchmark_scripts import script
from tests.support.opencl.kernels import device
from tests.support.paths import ROOT

HAND = ROOT / "examples" / "opencl" / "hand"
NAMES = sorted(file.stem for file in HAND.glob("*.cl"))
QUICK = ("nbody_clusters",)


@pytest.fixture(scope="module")
def hand() -> ModuleType:
    return script("opencl/hand")


def test_every_kernel_has_a_layout_and_every_example_kernels(hand: ModuleType) -> None:
    layouts = hand.hand_layouts()
    assert sorted(layouts) == NAMES
    assert {one["example"] for one in layouts.values()} == {file.stem for file in HAND.parent.glob("*.cl")}


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES])
def test_it_leaves_what_the_example_leaves(hand: ModuleType, name: str) -> None:
    found = device()
    outcomes = in_fresh_process(KernelJob(name_of(found), hand.versions(name), 0.0))
    for outcome in outcomes:
        assert not outcome.problem
        assert outcome.compared is not None
        assert not outcome.compared.problem
        assert outcome.compared.changed > 0


def test_the_error_is_that_of_the_ratios(hand: ModuleType) -> None:
    rows = [
        {"name": name, "layout": "l", "predicted": [2.0, 1.9, 2.1], "by_hand": [2.0, 1.9, 2.1],
         "predicted_over_hand": [ratio, ratio - 0.1, ratio + 0.1]}
        for name, ratio in (("a", 1.01), ("b", 0.98), ("c", 1.2))
    ]  # fmt: skip
    assert hand.table(rows).endswith("3 rows, median error 2.0%, worst 20.0%")
