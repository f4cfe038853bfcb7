"""The wheel in an empty environment, without the checkout: small, complete, and the demo runs from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
MOST_WHEEL = 3_000_000
MOST_BASE = 150_000_000
"""Bytes of the wheel, and of all that it needs in an environment."""
VENV_OWN = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
"""What an empty environment has already."""


def done(*command: str | Path, cwd: Path, **variables: str) -> str:
    environment = {**os.environ, **variables}
    environment.pop("PYTHONPATH", None)
    told = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr[-3000:]
    return told.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the files that git knows, so that nothing left in the tree gets into it."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    tree.mkdir()
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    subprocess.run(["tar", "c", "-T", "-", "-f", folder / "tree.tar"], cwd=ROOT, input=files, text=True, check=True)
    subprocess.run(["tar", "x", "-f", folder / "tree.tar"], cwd=tree, check=True)
    done(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, tree, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path) -> Path:
    """An empty environment with the wheel in it; returns its folder of commands."""
    home = wheel.parent / "venv"
    done(sys.executable, "-m", "venv", home, cwd=wheel.parent)
    done(home / "bin" / "python", "-m", "pip", "install", "-q", wheel, cwd=wheel.parent)
    return home / "bin"


def test_the_sizes(wheel: Path, environment: Path) -> None:
    assert wheel.stat().st_size <= MOST_WHEEL
    (packages,) = (environment.parent / "lib").glob("python3*/site-packages")
    files = [file for file in packages.rglob("*") if file.is_file()]
    used = sum(file.stat().st_size for file in files if file.relative_to(packages).parts[0] not in VENV_OWN)
    assert used <= MOST_BASE


def test_it_works_without_the_checkout(environment: Path, tmp_path: Path) -> None:
    command, cache = environment / "layout-advise", str(tmp_path / "cache")
    assert "Store `particle`" in done(command, "demo", "--recorded", cwd=tmp_path, XDG_CACHE_HOME=cache)
    # what is an extra says so, in a line
    told = subprocess.run(
        [command, "report", "demo.layout", "--figure", "a.svg"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (told.returncode, told.stderr.count("\n")) == (4, 1)
    assert "pip install 'layout-advise[figures]'" in told.stderr
    found = json.loads(done(command, "doctor", "--json", cwd=tmp_path, XDG_CACHE_HOME=cache))
    assert all(one["ok"] for one in found if one["needed"])


def test_the_demo_runs_from_it(environment: Path, tmp_path: Path) -> None:
    command, cache = environment / "layout-advise", str(tmp_path / "cache")
    done(command, "doctor", "--install", "criu", cwd=tmp_path, XDG_CACHE_HOME=cache)
    printed = done(command, "demo", cwd=tmp_path, XDG_CACHE_HOME=cache)
    assert "`particle`" in printed
    report = json.loads((tmp_path / "demo.layout" / "report.json").read_text())
    assert report["hotspots"][0]["verdict"]["action"] in ("change", "undecided")
    assert any(c["evidence"] == "verified" for c in report["hotspots"][0]["candidates"])
    assert str(ROOT) not in (tmp_path / "demo.layout" / "report.json").read_text()
    # the other backend is built from what the wheel has
    traced = ["--until", "trace", "--backend", "valgrind", "--hotspot", "update_pressure", "-o", "v.layout", "--"]
    traced += ["demo.program/particles", "1000", "30"]
    done(command, "trace", *traced, cwd=tmp_path, XDG_CACHE_HOME=cache)
    assert "particles.c:16" in done(command, "show", "v.layout", cwd=tmp_path)
