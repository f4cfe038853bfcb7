"""A processor's calibration: the command with tiny kernels, whose calibration is taken, and what `doctor` says."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import msgspec
import pytest

from layout_advise import machine
from layout_advise.cli import main
from layout_advise.commands.doctoring.calibrated import calibration
from layout_advise.commands.kernels import calibrate
from layout_advise.reports.model.contract import Machine
from layout_advise.tiles import kept
from layout_advise.tiles.processor.shapes import FEW, RUN, WHOLE, ClusterWalk, WalkSample, shapes, tiles_of
from layout_advise.tiles.processor.stored import SCHEMA, ProcessorCalibration, file_of, others, store, stored
from layout_advise.tiles.train import cross_validated, loss, trained
from layout_advise.tiles.tree import TileTree, TreeNode

HERE = Machine("this processor", 2, 64, 32 << 10, 1 << 20, 32 << 20)
LEAF = TileTree((TreeNode(-1, 0.0, -1, -1, 16),), 0.0)
TINY = tuple(ClusterWalk(4 * members, members, 128, trips) for members in (2, 3) for trips in (128, RUN, 1))


def made(at: Machine, days: int = 0) -> ProcessorCalibration:
    shape = ClusterWalk(8, 2, 128, 1)
    created = time.time() - days * 86400
    sample = WalkSample(shape, {1: 1.5, WHOLE: 2.0})
    return ProcessorCalibration(SCHEMA, at, "gcc", ("-O3",), created, LEAF, 1.02, 1.1, 1.2, 1.3, (sample,))


def test_it_is_kept_with_its_processor_and_taken_there_alone() -> None:
    assert stored(HERE) is None
    path = store(made(HERE, 3))
    assert stored(HERE) == msgspec.json.decode(path.read_bytes(), type=ProcessorCalibration)
    assert "3 days old; 1 kernels" in made(HERE, 3).told
    assert made(HERE).told.endswith("on this processor")
    assert stored(msgspec.structs.replace(HERE, cores=64)) is not None  # how many of them are used says nothing of tiles
    for change in ({"cpu": "another"}, {"l2_bytes": 2 << 20}, {"l3_bytes": 0}, {"l1d_bytes": 48 << 10}):
        other = msgspec.structs.replace(HERE, **change)
        assert stored(other) is None
        assert [one.machine for one in others(other)] == [HERE]
    assert others(HERE) == []


def test_a_file_that_says_another_processor_is_not_taken() -> None:
    """A cache that was copied from another machine under this one's name."""
    foreign = made(msgspec.structs.replace(HERE, cpu="another"))
    path = file_of(HERE)
    path.parent.mkdir(parents=True)
    path.write_bytes(msgspec.json.encode(foreign))
    assert stored(HERE) is None
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(made(HERE), schema="another")))
    assert stored(HERE) is None
    path.write_bytes(b"{")
    assert stored(HERE) is None
    assert others(HERE) == []


def test_a_tree_finds_what_tiles_hang_on() -> None:
    """Picked elements want records, streams arrays, as far as a tree is asked for each on its own."""

    def right(shape: ClusterWalk) -> int:
        return 1 if shape.trips == 1 else WHOLE if shape.elements in FEW else 16

    every = shapes(HERE)
    timed = [WalkSample(one, {t: 1.0 if t == right(one) else 1.5 for t in tiles_of(one.elements)}) for one in every]
    tree = trained(timed)
    assert all(tree.tile(one) == right(one) for one in every)
    assert cross_validated(timed, tree.alpha) == pytest.approx(1.0)
    assert loss(timed, lambda _shape: 1) == pytest.approx(1 + 0.5 * 2 / 3)
    assert loss(timed, lambda _shape: 1 << 14) > 1.2  # all elements of the small ones, and a tile of the large ones


def test_the_command_keeps_a_calibration_and_doctor_tells_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """End to end with tiny kernels: compiled, timed, trained, kept, read again. Nothing is said about times."""
    monkeypatch.setenv("LAYOUT_ADVISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LAYOUT_ADVISE_CALIBRATIONS")
    monkeypatch.setattr(calibrate, "processor_shapes", lambda _machine: TINY)
    before = calibration()
    assert (before.ok, before.needed) == (False, False)
    assert f"none of this processor ({machine.describe().cpu})" in before.text
    assert main(["calibrate", "-q"]) == 0
    said = capfd.readouterr().out
    assert said.startswith(f"{machine.describe().cpu}: tiles take ")
    found = stored()
    assert found is not None
    assert [one.shape for one in found.samples] == list(TINY)
    assert all(tuple(one.times) == tiles_of(128) for one in found.samples)
    assert {found.tree.tile(one) for one in TINY} <= set(tiles_of(128))
    assert min(found.loss, found.loss_of_records, found.loss_of_arrays, found.loss_of_blocks) >= 1.0
    assert str(tmp_path / "cache" / "calibrations") in said
    assert main(["doctor", "--json"]) in (0, 4)
    (line,) = (one for one in json.loads(capfd.readouterr().out) if one["name"] == "calibration")
    assert line["ok"]
    assert "(today; 6 kernels" in line["text"]
    assert main(["calibrate", "-q", "--cpu", "--shapes", "4"]) == 0
    again = stored()
    assert again is not None
    assert len(again.samples) == 4


def test_doctor_says_what_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "describe", lambda: HERE)
    store(made(msgspec.structs.replace(HERE, cpu="another"), 400))
    assert "not taken: calibration of " in calibration().text
    assert calibration().text.endswith("on another")
    store(made(msgspec.structs.replace(HERE, l3_bytes=0)))
    assert calibration().text.endswith("on this processor (other caches)")
    assert not calibration().ok
    store(made(HERE, 400))
    assert calibration().ok
    assert "400 days old" in calibration().text


def test_what_is_wrong_is_told_before_anything_is_timed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibrate, "calibrated_processor", lambda *_: pytest.fail("kernels are timed"))
    monkeypatch.setattr(calibrate, "processor_shapes", lambda _machine: TINY)
    assert main(["calibrate", "--shapes", "7"]) == 2
    assert "--shapes must be between 4 and 6" in capfd.readouterr().err
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    assert main(["calibrate"]) == 4
    assert "scikit-learn is missing; pip install 'layout-advise[calibrate]'" in capfd.readouterr().err


def test_calibrations_lie_where_they_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYOUT_ADVISE_CALIBRATIONS", str(tmp_path / "own"))
    assert store(made(HERE)).parent == tmp_path / "own" == kept.folder()
