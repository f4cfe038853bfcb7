"""The work of ``doctor --install``: packages of the system through apt, CRIU of its own beside them.

apt is run as root only, and never for CRIU: the distribution's may not work with this kernel, so a private one is unpacked
(:mod:`layout_advise.tracer.snapshot.criu_install`), in a wheel below the user's cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from layout_advise.errors import MachineError
from layout_advise.tracer.snapshot import criu_install

CRIU = "criu"
PATIENCE = 1800.0
"""Seconds that one command of apt may take."""


def install_packages(packages: Sequence[str]) -> None:
    """Install packages of the system. Raises :class:`MachineError`, with the command to type, where that cannot be done."""
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    typed = " ".join([command[0], command[1], *packages])
    if shutil.which("apt-get") is None:
        hint = f"install what this distribution calls {', '.join(packages)}, or use an image with them (Containerfile)"
        raise MachineError("cannot install packages", "there is no apt-get", hint)
    if os.geteuid() != 0:
        raise MachineError("cannot install packages", "that needs root", f"as root: {typed}")
    print(f"$ {typed}", file=sys.stderr)
    if _apt(command).returncode != 0:
        _apt(["apt-get", "update"])  # the lists may be missing or old
        done = _apt(command)
        if done.returncode != 0:
            last = [line for line in done.stderr.splitlines() if line.strip()][-1:] or ["apt-get failed"]
            raise MachineError(f"cannot install {', '.join(packages)}", last[0], f"try it by hand: {typed}")


def _apt(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        return subprocess.run(
            [command[0], "-q", *command[1:]],
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineError("cannot install packages", str(error), "run apt-get by hand") from error


def install_criu() -> None:
    """Install the private CRIU. Raises :class:`MachineError` where that cannot be done or it does not work here."""
    folder = criu_install.private_folder()
    print(f"$ CRIU into {folder}", file=sys.stderr)
    criu_install.install(folder)
