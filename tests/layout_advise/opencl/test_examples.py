"""The kernels of ``examples/opencl`` are read, and their members cluster as is told of them; no device is used."""

from __future__ import annotations

import json

import pytest

from layout_advise.cli import main
from layout_advise.opencl.graph.fields import field_graph, united
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.source.read import read_program
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples" / "opencl"
CLUSTERS = {
    "bitonic": ["key value weight next"],  # the paper: one cluster
    "boxes": ["v x y z", "v x y z"],
    "diffusion": ["image north south west east coefficient"],
    "heat": ["now next power ambient"],
    "kmeans": ["a b c d e f g h", "cluster distance"],
    "nbody": ["x y z m", "vx vy vz"],  # what the loop over all bodies reads, and what it does not
    "options": ["spot strike years rate volatility call put"],
    "sampo": ["age health"],
}
"""Of the kernel in the spec, all clusters of members that it accesses, record by record."""
LOOPS = {"nbody": 512_000, "kmeans": 512_000}
"""Bytes at least between some members of different clusters: a loop of unknown length is between their accesses."""


def test_every_kernel_is_here() -> None:
    assert (
        {file.stem for file in EXAMPLES.glob("*.cl")} == CLUSTERS.keys() == {file.stem for file in EXAMPLES.glob("*.toml")}
    )


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_field_graph_of_an_example(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    kernel, spec = (str(EXAMPLES / f"{name}.{suffix}") for suffix in ("cl", "toml"))
    assert main(["opencl", "--kernel", kernel, "--spec", spec, "--graph", "--json", "-"]) == 0
    records = json.loads(capfd.readouterr().out)["programs"][0]["records"]
    assert [" ".join(group) for record in records for group in record["clusters"]] == CLUSTERS[name]
    for record in records:
        group = {member: k for k, names in enumerate(record["clusters"]) for member in names}
        far = [edge["bytes"] for edge in record["edges"] if group[edge["a"]] != group[edge["b"]]]
        assert min(edge["bytes"] for edge in record["edges"]) < 64
        assert all(count >= 64 for count in far)
        assert max(far, default=0) >= LOOPS.get(name, 0)


def test_the_two_kernels_of_the_agents_cluster_by_six_and_two() -> None:
    program = read_program((EXAMPLES / "sampo.cl").read_text())
    steps = [kernel_steps(program, kernel) for kernel in program.kernels]
    graph = united([field_graph(program.records[0], one) for one in steps])
    names = [member.name for member in program.records[0].members]
    found = [" ".join(names[k] for k in group) for group in graph.clusters()]
    # the paper: clusters of two and of six fields; the four that no kernel accesses are apart
    assert found == ["x y z vx vy vz", "age health", "home_x home_y home_z kind"]
