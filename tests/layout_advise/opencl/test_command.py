"""The command: its report, and one line for everything that does not fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.opencl.measure.clock import clock_of
from layout_advise.reports.model.kernels import CLOCK_NAMES, decode_opencl
from layout_advise.reports.pages import kernel_pages
from tests.support.opencl.kernels import FORCES, device

SPEC = """
global = 64
local = [16]
[[args]]
buffer = "bodies"
count = 64
[[args]]
value = 64
[[args]]
buffer = "scale"
count = 1
fill = 2.5
"""


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    (tmp_path / "k.cl").write_text(FORCES)
    (tmp_path / "args.toml").write_text(SPEC)
    return ["opencl", "--kernel", str(tmp_path / "k.cl"), "--spec", str(tmp_path / "args.toml")]


def test_the_field_graph_alone_needs_no_device(given: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*given, "--graph"]) == 0
    said = capfd.readouterr().out
    assert "forces (k.cl:5), 64 work items in groups of 16" in said
    assert "Body: 64 elements of 32 bytes, 6 of 8 members used" in said
    assert "edges below 64 bytes: {x y z m} {vx vy}" in said
    assert "no edges: {x} {y} {z} {vx} {vy} {m}" in said
    assert "edges up to 8 bytes: {x y z m} {vx vy}" in said
    assert main([*given, "--graph", "--json", "-"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["schema"] == "layout-advise.opencl/1"
    assert {"a": "x", "b": "y", "bytes": 8.0} in report["programs"][0]["records"][0]["edges"]


@pytest.mark.slow
def test_a_whole_run(given: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    device()
    page, data = tmp_path / "r.html", tmp_path / "r.json"
    assert main([*given, "--processes", "2", "-o", str(page), "--json", str(data)]) == 0
    report = decode_opencl(data.read_bytes())
    (found,) = report.programs[0].devices
    assert found.clock == clock_of(device())
    assert {layout.evidence for layout in found.layouts} == {"verified"}
    assert 2 < len(found.layouts) <= 12
    assert sum(layout.speedup is not None for layout in found.layouts) >= 2
    said = capfd.readouterr().out
    assert found.verdict.text in said
    assert f"speedup by {CLOCK_NAMES[found.clock]}" in said
    assert f"by {CLOCK_NAMES[found.clock]}, " in said
    assert "; against itself" in said
    assert f"<th>speedup by {CLOCK_NAMES[found.clock]}</th>" in page.read_text()
    assert found.verdict.text in page.read_text().replace("&#34;", '"')
    assert kernel_pages.page(report) == page.read_text()


@pytest.mark.parametrize(
    ("before", "after", "code", "said"),
    [
        ("value = 64", "local = 64", 2, "parameter n (const int) needs value"),
        ("count = 64", "count = 0", 2, "buffer bodies has no count, bytes or file"),
        ("local = [16]", "locale = [16]", 2, "no such key: locale"),
        ("global = 64", 'global = 64\nkernel = "fourth"', 2, "no kernel fourth"),
        ("global = 64", 'global = "many"', 2, "- at `$.global`"),
        ("[[args]]\nvalue = 64\n", "", 2, "2 args, the kernel 3 parameters"),
        ("global = 64", "global = = 64", 2, "cannot read"),
    ],
)
def test_a_spec_that_does_not_fit(
    given: list[str], capfd: pytest.CaptureFixture[str], before: str, after: str, code: int, said: str
) -> None:
    spec = Path(given[-1])
    assert before in SPEC
    spec.write_text(SPEC.replace(before, after))
    assert main([*given, "--graph"]) == code
    error = capfd.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_kernel_that_does_not_build_says_so_once(given: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Path(given[2]).write_text(FORCES.replace("ax += ", "ax += oops * "))
    assert main(given) == 1
    error = capfd.readouterr().err
    assert "k.cl does not parse: k.cl:11: use of undeclared identifier 'oops'" in error
    assert error.count("\n") == 1


def test_a_machine_without_a_platform(given: list[str]) -> None:
    environment = {**os.environ, "OCL_ICD_VENDORS": "/nowhere", "OPENCL_VENDOR_PATH": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-m", "layout_advise", *given], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 4
    assert "cannot use OpenCL" in done.stderr
    assert "pocl-opencl-icd" in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_a_kernel(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["opencl"]) == 2
    assert "a host program is needed, or --kernel and --spec" in capfd.readouterr().err
