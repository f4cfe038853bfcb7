"""A user who is not root: README's commands in a clone, the wheel in an empty environment, and what is missing is told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="becomes another user"),
]
USER = ("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all")
PYTHON = "/usr/bin/python3"
NO_TOOLS = "no-tools"


def typed(home: Path, line: str, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    """What the user's shell does with a line, in the user's own folder."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_"))}
    environment = {**kept, "HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "USER": "newcomer"}
    return subprocess.run(
        [shutil.which(USER[0]) or USER[0], *USER[1:], "/bin/bash", "-c", line],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """The user's folder, with a clone in it that holds the files that git knows, and the wheel. It is not in pytest's own
    folder, which each run of pytest closes to others."""
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        yield _furnished(Path(folder))


def _furnished(folder: Path) -> Path:
    folder.chmod(0o755)
    clone = folder / "clone"
    clone.mkdir()
    listed = ["git", "ls-files", "-co", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    subprocess.run(["tar", "c", "-T", "-", "-f", folder / "tree.tar"], cwd=ROOT, input=files, text=True, check=True)
    subprocess.run(["tar", "x", "--no-same-owner", "-f", folder / "tree.tar"], cwd=clone, check=True)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, clone], check=True)
    shutil.rmtree(clone / "build", ignore_errors=True)
    tools = folder / NO_TOOLS
    tools.mkdir()
    for name in ("bash", "env", "uname", "git", "python3", "ls", "cat"):
        (tools / name).symlink_to(shutil.which(name, path="/usr/bin:/bin") or name)
    subprocess.run(["chown", "-R", "54321:54321", folder], check=True)
    return folder


@pytest.fixture(scope="module")
def installed(home: Path) -> Path:
    """The user's folder with the wheel in an environment of its own, whichever of the tests comes first."""
    told = typed(home, f"{PYTHON} -m venv venv && venv/bin/pip install -q *.whl")
    assert told.returncode == 0, told.stderr[-3000:]
    return home


def errors(told: subprocess.CompletedProcess[str]) -> list[str]:
    assert "Traceback" not in told.stderr
    return [line for line in told.stderr.splitlines() if line.startswith("layout-advise: ")]


def test_make_demo_in_a_clone(home: Path) -> None:
    told = typed(home, "cd clone && make demo")
    assert told.returncode == 0, told.stderr[-3000:]
    assert "`particle`" in told.stdout
    assert errors(told) == []
    hotspot = json.loads((home / "clone" / "demo.layout" / "report.json").read_text())["hotspots"][0]
    assert hotspot["snapshot"] == "fork"
    assert any(c["evidence"] == "verified" for c in hotspot["candidates"])
    told = typed(home, "cd clone && .venv/bin/python -m pytest -q tests/reports -x -m 'not slow' -k first_screen")
    assert told.returncode == 0, told.stdout[-2000:]


def test_the_wheel_in_an_empty_environment(installed: Path) -> None:
    home = installed
    told = typed(home, "venv/bin/layout-advise demo --recorded")
    assert told.returncode == 0, told.stderr[-3000:]
    assert "Store `particle`" in told.stdout
    told = typed(home, "mkdir run && cd run && ../venv/bin/layout-advise demo")
    assert told.returncode == 0, told.stderr[-3000:]
    assert errors(told) == []


def test_doctor_tells_what_is_missing(installed: Path) -> None:
    home = installed
    told = typed(home, "venv/bin/layout-advise doctor")
    assert told.returncode == 0
    assert "no CRIU that works here" in told.stdout
    assert "(as root)" in told.stdout
    told = typed(home, "venv/bin/layout-advise doctor --install criu")
    assert errors(told) == [
        "layout-advise: CRIU does not work here: it needs root; snapshots are taken by fork instead",
    ]
    bare = typed(home, "venv/bin/layout-advise doctor", path=str(home / NO_TOOLS))
    assert bare.returncode == 4
    assert errors(bare) == ["layout-advise: missing: gcc, as: no advice is possible without; see the hints above"]
    assert "apt-get install gcc" in bare.stdout
    told = typed(home, "venv/bin/layout-advise demo -o other.layout", path=str(home / NO_TOOLS))
    assert told.returncode == 4
    assert len(errors(told)) == 1
    told = typed(home, "venv/bin/layout-advise doctor --install gcc", path=f"{home / NO_TOOLS}:/usr/sbin")
    assert len(errors(told)) == 2  # no apt-get, and what is missing


def test_what_cannot_be_written_is_one_line(installed: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)  # root's
    for line in (
        f"trace -o {tmp_path}/x.layout -- /bin/ls",
        "demo -o /nowhere/x.layout",
        f"report {tmp_path}/x.layout",
    ):
        told = typed(installed, f"venv/bin/layout-advise {line}")
        assert told.returncode in (1, 2), line
        assert len(errors(told)) == 1, told.stderr
