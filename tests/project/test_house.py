"""The rules of the house that a machine can check."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

FLOORS = {"layoutalgebra": 0, "tracer": 1, "mockup": 2, "reports": 2, "layout_advise": 3}
FORBIDDEN_SIDEWAYS = {("mockup", "reports"), ("reports", "mockup")}


def modules() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [ROOT / f for f in listed if f.split("/")[0] in FLOORS]


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {n for n in names if n.startswith("layout_advise.")}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    home = path.relative_to(ROOT).parts[0]
    for name in imported(path):
        part = name.split(".")[1]
        if part == "errors":
            continue
        target = part if part in FLOORS else "layout_advise"
        assert FLOORS[target] <= FLOORS[home], f"{path} imports {name}"
        assert (home, target) not in FORBIDDEN_SIDEWAYS, f"{path} imports {name}"


def test_errors_is_a_leaf() -> None:
    assert imported(ROOT / "layout_advise" / "errors.py") == set()


def test_folders_ship_under_one_name() -> None:
    code = "import sys, layout_advise.cli; assert not {'tracer', 'mockup', 'reports', 'layoutalgebra'} & set(sys.modules)"
    subprocess.run([sys.executable, "-P", "-c", code], cwd="/", check=True)
