"""The kernels of ``examples/opencl`` are read, and their members cluster as is told of them; no device is used."""

from __future__ import annotations

import pytest

from layout_advise.cli import main
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples" / "opencl"
CLUSTERS = {
    "bitonic": "{key value weight next}",
    "boxes": "",
    "diffusion": "",
    "heat": "",
    "kmeans": "{a b c d e f g h} {cluster distance}",
    "nbody": "{x y z m} {vx vy vz}",
    "options": "",
    "sampo": "",
}


def test_every_kernel_is_here() -> None:
    assert (
        {file.stem for file in EXAMPLES.glob("*.cl")} == CLUSTERS.keys() == {file.stem for file in EXAMPLES.glob("*.toml")}
    )


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_field_graph_of_an_example(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    kernel, spec = (str(EXAMPLES / f"{name}.{suffix}") for suffix in ("cl", "toml"))
    assert main(["opencl", "--kernel", kernel, "--spec", spec, "--graph"]) == 0
    printed = capfd.readouterr().out
    assert "field graph, edges below 64 bytes: " in printed
    assert CLUSTERS[name] in printed
