"""Debian's packages without touching the system: an apt root of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
"""Verifies the suites that packages are taken from."""


def private_apt(root: Path, suite: str, *, sources: bool = False) -> dict[str, str]:
    """Returns the environment of apt commands on the root in ``root``, which is made where it is not there: nothing is
    installed in it, and its package lists have to be read first. ``sources``: source packages, too."""
    for part in ("lists/partial", "archives/partial"):
        (root / part).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()  # nothing is installed: every dependency is fetched, the C library too
    site = f"[signed-by={KEYRING}] {_mirror()} {suite} main\n"
    (root / "sources.list").write_text(f"deb {site}" + (f"deb-src {site}" if sources else ""))
    settings = {
        "Dir::State": root,
        "Dir::State::status": root / "status",
        "Dir::State::lists": root / "lists",
        "Dir::Cache": root,
        "Dir::Cache::archives": root / "archives",
        "Dir::Etc::sourcelist": root / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "root",  # the folder need not be readable for _apt
        "Acquire::Languages": "none",
        # A mirror that lags behind or was frozen on purpose is signed all the same.
        "Acquire::Check-Valid-Until": "false",
        "Acquire::Retries": "3",
    }
    (root / "apt.conf").write_text(
        "".join(f'{key} "{value}";\n' for key, value in settings.items()) + 'APT::Architectures { "amd64"; };\n'
    )
    return {**os.environ, "APT_CONFIG": str(root / "apt.conf"), "DEBIAN_FRONTEND": "noninteractive"}


def _mirror() -> str:
    """The Debian mirror that this system uses, or the public one."""
    asked = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    sites = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    return next((site for site in sites if site.rstrip("/").endswith("/debian")), "http://deb.debian.org/debian")
