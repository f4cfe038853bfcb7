"""The container's image: built from a base that debootstrap makes, as registries cannot be reached everywhere, and run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]
TOOLS = ("debootstrap", "buildah", "podman", "runc")
CERTIFICATES = ("-v", "/etc/ssl/certs:/etc/ssl/certs:ro", "-v", "/etc/resolv.conf:/etc/resolv.conf:ro")
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096")
"""Limits below this machine's: without CAP_SYS_RESOURCE they cannot be raised."""


def done(*command: str | Path, **variables: str) -> str:
    told = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr[-3000:]
    return told.stdout


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options of podman and buildah for a store of their own, in which the image lies."""
    if os.geteuid() != 0 or any(shutil.which(tool) is None for tool in TOOLS):
        pytest.skip(f"needs root and {', '.join(TOOLS)}")
    folder = tmp_path_factory.mktemp("container")
    base = folder / "base"
    mirror = "http://deb.debian.org/debian"
    done("debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", base, mirror)
    options = ["--root", str(folder / "root"), "--runroot", str(folder / "run")]
    context = folder / "context"
    context.mkdir()
    shutil.copy(ROOT / "Containerfile", context)
    done(ROOT / ".venv/bin/python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", context / "dist", ROOT)
    buildah = ("buildah", "--storage-driver", "vfs", *options)
    empty = done(*buildah, "from", "scratch").strip()
    done(*buildah, "copy", "-q", empty, base, "/")
    done(*buildah, "commit", "-q", "--rm", empty, "localhost/bookworm")
    shutil.rmtree(base)
    build = ("bud", "--isolation", "chroot", "--network", "host", "--pull-never", *CERTIFICATES)
    done(*buildah, *build, "--build-arg", "BASE=localhost/bookworm", "-t", "layout-advise", context)
    return [*options, "--storage-driver", "vfs", "--tmpdir", str(folder / "tmp")]


def run(store: Sequence[str], options: Sequence[str], *words: str) -> subprocess.CompletedProcess[str]:
    podman = ["podman", *store, "--runtime", "runc", "--cgroup-manager", "cgroupfs"]
    command = [*podman, "run", "--rm", "--pull=never", "--network", "host", *LIMITS, *options, "layout-advise", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


def test_without_any_right_doctor_says_what_is_missing(store: Sequence[str]) -> None:
    told = run(store, (), "doctor")
    if "runc" in told.stderr or "OCI" in told.stderr:
        pytest.skip(f"no container can be started here: {told.stderr.strip()[-300:]}")
    assert told.returncode == 4
    assert told.stderr == "layout-advise: missing: fixed addresses: no advice is possible without; see the hints above\n"
    assert "--security-opt seccomp=unconfined" in told.stdout


@pytest.mark.parametrize(
    ("rights", "snapshots"),
    [
        (("--cap-add=SYS_PTRACE", "--security-opt", "seccomp=unconfined"), {"fork"}),
        (("--privileged", "--shm-size=1g"), {"fork", "criu"}),
    ],
)
def test_the_demo_runs_in_it(rights: Sequence[str], snapshots: set[str], store: Sequence[str], tmp_path: Path) -> None:
    told = run(store, (*rights, "-v", f"{tmp_path}:/work"), "demo")
    if "runc" in told.stderr or "OCI" in told.stderr:
        pytest.skip(f"no container can be started here: {told.stderr.strip()[-300:]}")
    assert told.returncode == 0, told.stderr[-2000:]
    hotspot = json.loads((tmp_path / "demo.layout" / "report.json").read_text())["hotspots"][0]
    assert hotspot["snapshot"] in snapshots
    assert any(c["evidence"] == "verified" for c in hotspot["candidates"]), hotspot["verdict"]["text"]
