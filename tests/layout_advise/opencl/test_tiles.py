"""Calibration: trees on given times, by which tiles are chosen; one real run on the device."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.cli import main
from layout_advise.commands.kernels import calibrate
from layout_advise.opencl import study
from layout_advise.opencl.candidates import GraphOfRecord, same_tile, tiled_choices
from layout_advise.opencl.graph.fields import accesses_of, field_graph
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.measure.jobs import name_of
from layout_advise.opencl.records import records_of
from layout_advise.opencl.rewrite.layouts import layout
from layout_advise.opencl.search import DeviceSearch
from layout_advise.opencl.searched import Searched
from layout_advise.opencl.source.read import read_program
from layout_advise.opencl.tiles.choose import by_tree, shape_of
from layout_advise.opencl.tiles.samples import (
    SHAPES,
    TILES,
    ClusterShape,
    TileSample,
    calibration_launch,
    calibration_source,
    sampled,
)
from layout_advise.opencl.tiles.stored import SCHEMA, Calibration, store, stored
from layout_advise.tiles.train import cross_validated, loss, trained
from layout_advise.tiles.tree import TileTree, TreeNode
from tests.support import slower
from tests.support.opencl.kernels import FORCES, device

ALWAYS_16 = TileTree((TreeNode(-1, 0.0, -1, -1, 16),), 0.0)
BY_BYTES = TileTree((TreeNode(0, 10.0, 1, 2, 0), TreeNode(-1, 0.0, -1, -1, 4), TreeNode(-1, 0.0, -1, -1, 256)), 0.0)


def sample(shape: ClusterShape, best: int) -> TileSample:
    """Times that grow with the distance from the best tile."""
    tiles = [tile for tile in TILES if tile <= shape.elements]
    return TileSample(shape, {tile: 100.0 * (1 + 0.1 * abs(tile.bit_length() - best.bit_length())) for tile in tiles})


def wide_or_narrow(shape: ClusterShape) -> int:
    return 16 if shape.members < 4 else 256


def test_a_tree_finds_what_the_tiles_hang_on() -> None:
    samples = [sample(shape, wide_or_narrow(shape)) for shape in SHAPES]
    tree = trained(samples)
    assert all(tree.tile(shape) == wide_or_narrow(shape) for shape in SHAPES)
    assert len(tree.nodes) == 3  # one question, and no more than that
    assert cross_validated(samples, tree.alpha) == pytest.approx(1.0)
    assert loss(samples, lambda _shape: 16) > 1.2


def test_what_hangs_on_nothing_is_one_leaf() -> None:
    tree = trained([sample(shape, 64) for shape in SHAPES])
    assert tree == TileTree((tree.nodes[0],), tree.alpha)
    assert tree.nodes[0].tile == 64


@settings(deadline=None, max_examples=5)
@given(st.lists(st.sampled_from(TILES[:5]), min_size=12, max_size=12))
def test_a_pruned_tree_asks_less_and_is_followed_as_it_was_trained(best: list[int]) -> None:
    samples = [sample(shape, tile) for shape, tile in zip(SHAPES[:12], best, strict=True)]
    tree = trained(samples)
    assert len(tree.nodes) <= 2 * 12 - 1
    assert {tree.tile(shape) for shape in SHAPES} <= set(best)
    # never worse than the worst of fixed tiles on what it was trained on
    assert (
        loss(samples, tree.tile)
        <= max(loss(samples, TileTree((TreeNode(-1, 0.0, -1, -1, t),), 0.0).tile) for t in TILES[:5]) + 1e-9
    )


def test_a_tree_tells_stencils_from_streams() -> None:
    samples = [sample(shape, 1024 if shape.around > 1 else 1) for shape in SHAPES]
    tree = trained(samples)
    assert all(tree.tile(shape) == (1024 if shape.around > 1 else 1) for shape in SHAPES)
    assert len(tree.nodes) == 3


@pytest.mark.parametrize(
    "shape",
    [ClusterShape(12, 3, 1 << 10, 1, *form) for form in ((1, 1), (3, 1), (1, 2), (5, 2))],
    ids=["stream", "beside", "plane", "around"],
)
def test_kernels_of_the_calibration_are_like_their_shapes(shape: ClusterShape) -> None:
    launch = calibration_launch(shape)
    program = read_program(launch.source)
    (found,) = records_of(program, [launch])
    (cluster,) = layout(found.record, ((0, 1, 2),), (4,)).clusters
    assert shape_of(found.graph, cluster) == shape


def bodies() -> GraphOfRecord:
    program = read_program(FORCES)
    steps = kernel_steps(program, program.kernels[0])
    record = program.records[0]
    return GraphOfRecord(field_graph(record, steps), frozenset(), 64, accesses_of(record, [steps]))


def test_trips_are_those_of_the_loops() -> None:
    one = bodies()
    assert one.trips["vx"] == 1
    assert one.trips["m"] == one.trips["x"] > 1000  # a bound that nobody knows counts as in the paper


def test_each_cluster_gets_its_own_tile() -> None:
    one = bodies()
    record = one.graph.record
    groups = ((0, 1, 2, 6), (3, 4), (5, 7))
    (clustered, last) = layout(record, groups, (1, 1, 1)).clusters[:2]
    assert shape_of(one, clustered) == ClusterShape(16, 4, 64, one.trips["m"])
    assert shape_of(one, last) == ClusterShape(8, 2, 64, 1)
    tile = by_tree(BY_BYTES)
    assert tile(one, last) == 4
    assert tile(one, clustered) == 1  # 256 elements are more than there are
    made = tiled_choices([(layout(record, groups, (1, 1, 1)),)], [one], [], tile)
    assert (1, 4, 1) in {choice[0].tiles for choice in made}
    fixed = tiled_choices([(layout(record, groups, (1, 1, 1)),)], [one], [], same_tile(64))
    assert (64, 64, 1) in {choice[0].tiles for choice in fixed}


def test_it_is_kept_with_its_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYOUT_ADVISE_CACHE", str(tmp_path))
    found = device()
    assert stored(found) is None
    shape = ClusterShape(8, 2, 1024, 1)
    made = Calibration(SCHEMA, "p", "d", "v", "m", time.time() - 3 * 86400, ALWAYS_16, 1.02, 1.3, 1.4, (sample(shape, 16),))
    path = store(found, made)
    assert stored(found) == made
    assert "3 days old; 1 kernels" in made.told
    path.write_bytes(b"{}")
    assert stored(found) is None
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(made, schema="another")))
    assert stored(found) is None


@pytest.mark.parametrize(
    "form", [(16, 1, 1), (1, 5, 2), *slower(((1, 3, 1),), ((1, 1, 2),))], ids=["total", "around", "beside", "plane"]
)
def test_the_kernels_run_in_every_tile(form: tuple[int, int, int]) -> None:
    found = sampled(ClusterShape(12, 3, 1 << 10, *form), name_of(device()), "cpu", 0.0)
    assert list(found.times) == [tile for tile in TILES if tile <= 1 << 10]
    assert all(ns > 0 for ns in found.times.values())
    assert "r[k].m0 + r[k].m1 + r[k].m2" in calibration_source(3)


def test_what_is_wrong_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--device", "--shapes", "2"]) == 2
    assert "--shapes must be between 4 and 84" in capfd.readouterr().err


def test_without_scikit_learn_nothing_is_timed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    monkeypatch.setattr(calibrate, "devices", lambda _name: pytest.fail("devices are looked for"))
    assert main(["calibrate", "--device"]) == 4
    (line,) = capfd.readouterr().err.splitlines()
    assert "scikit-learn is missing; pip install 'layout-advise[opencl]'" in line


def test_the_search_is_given_what_was_calibrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The whole way from the command that calibrates to the search, with given times in the place of measured ones."""
    device()
    tried: list[int] = []

    class Search(DeviceSearch):
        def run(self, processes: int) -> Searched:
            record = self.records[0]
            (cluster,) = layout(record.graph.record, (tuple(range(8)),), (16,)).clusters
            tried.append(self.tile(record, cluster))
            return self.found

    monkeypatch.setenv("LAYOUT_ADVISE_CACHE", str(tmp_path))
    monkeypatch.setattr(calibrate, "samples", lambda _device, shapes, _tell, _clock: [sample(one, 4) for one in shapes])
    monkeypatch.setattr(study, "DeviceSearch", Search)
    (tmp_path / "k.cl").write_text(FORCES)
    given = '[[args]]\nbuffer = "b"\ncount = 64\n[[args]]\nvalue = 64\n[[args]]\nbuffer = "s"\ncount = 1\n'
    (tmp_path / "args.toml").write_text(f"global = 64\nlocal = 16\n{given}")
    words = ["opencl", "-q", "--kernel", str(tmp_path / "k.cl"), "--spec", str(tmp_path / "args.toml")]
    assert main(words) == 0
    assert main(["calibrate", "-q", "--device"]) == 0
    said = capfd.readouterr().out
    assert "tiles take 1.000 of the best ones' time on kernels not trained on (always 64: 1.4" in said
    assert main(words) == 0
    count = len(tried) // 2  # each device once without a calibration, once with its own
    assert tried == [64] * count + [4] * count


@pytest.mark.slow
def test_a_calibration_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    device()
    monkeypatch.setenv("LAYOUT_ADVISE_CACHE", str(tmp_path))
    assert main(["calibrate", "-q", "--device", "--shapes", "4"]) == 0
    assert "of the best ones' time on kernels not trained on" in capfd.readouterr().out
    (tmp_path / "k.cl").write_text(FORCES)
    given = '[[args]]\nbuffer = "b"\ncount = 64\n[[args]]\nvalue = 64\n[[args]]\nbuffer = "s"\ncount = 1\n'
    spec = f"global = 64\nlocal = 16\n{given}"
    (tmp_path / "args.toml").write_text(spec)
    words = ["opencl", "--kernel", str(tmp_path / "k.cl"), "--spec", str(tmp_path / "args.toml"), "--processes", "1"]
    assert main(words) == 0
    assert "first tiles by the calibration of" in capfd.readouterr().out
