"""Fetches what a row of the field names, into the current folder: ``fetch.py debian:bzip2=1.0.8-5``.

``debian:NAME=VERSION`` is a Debian source package (its patches applied), ``debian-binary:NAME=VERSION`` an unpacked Debian
package, ``pypi:NAME=VERSION`` a source distribution, ``npm:NAME=VERSION`` a package from npm; several may be given.
The package lists are in an apt root of its own below ``$XDG_CACHE_HOME`` (by default ``~/.cache``): nothing of the
system changes, and the system's sources need no ``deb-src``. Checksums are those of the signed lists, and of pip and npm.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from layout_advise.tracer.snapshot.private_apt import private_apt

SUITE = "bookworm"
LISTS_LAST = 14 * 86400.0
"""Seconds after which the package lists are read anew."""
SECONDS = 600.0


def cache() -> Path:
    """The folder of the apt root."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "layout-advise" / "field-apt"


def apt() -> dict[str, str]:
    """The environment of apt with the private root, whose lists are read where they are missing or old."""
    root = cache()
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        environment = private_apt(root, SUITE, sources=True)
        stamp = root / "read"
        if not stamp.exists() or time.time() - stamp.stat().st_mtime > LISTS_LAST:
            run(["apt-get", "-q", "update"], environment)
            stamp.touch()
    return environment


def run(command: list[str], environment: dict[str, str] | None = None, folder: Path | None = None) -> None:
    """Runs a command; ends this program with its last line where it fails."""
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False
    )
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
        sys.exit(f"{' '.join(command[:3])}: {last[0]}")


def debian(name: str, version: str, work: Path) -> Path:
    """The unpacked source package."""
    run(["apt-get", "-q", "source", "--only-source", f"{name}={version}"], apt(), work)
    return next(path for path in work.iterdir() if path.is_dir())


def debian_binary(name: str, version: str, work: Path) -> Path:
    """The unpacked package: ``usr/bin/...``."""
    run(["apt-get", "-q", "download", f"{name}={version}"], apt(), work)
    run(["dpkg", "-x", str(next(work.glob("*.deb"))), str(work / "root")])
    return work / "root"


def pypi(name: str, version: str, work: Path) -> Path:
    """The unpacked source distribution."""
    # pip asks the package for its metadata, with what that needs in an environment of its own
    run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            name,
            "-d",
            str(work),
            f"{name}=={version}",
        ]
    )
    file = next(path for path in work.iterdir() if path.name.endswith((".tar.gz", ".zip")))
    (work / "root").mkdir()
    run(
        ["tar", "xf", str(file), "-C", str(work / "root")]
        if file.suffix == ".gz"
        else ["unzip", "-q", str(file), "-d", "root"]
    )
    return next(path for path in (work / "root").iterdir() if path.is_dir())


def npm(name: str, version: str, work: Path) -> Path:
    """The unpacked package."""
    run(["npm", "pack", "--silent", f"{name}@{version}"], folder=work)
    run(["tar", "xf", str(next(work.glob("*.tgz"))), "-C", str(work)])
    return work / "package"


KINDS = {"debian": debian, "debian-binary": debian_binary, "pypi": pypi, "npm": npm}


def main() -> None:
    """Fetches all that the arguments name."""
    for word in sys.argv[1:]:
        kind, _, rest = word.partition(":")
        name, _, version = rest.partition("=")
        if kind not in KINDS or not name or not version:
            sys.exit(f"{word}: not KIND:NAME=VERSION with KIND one of {', '.join(KINDS)}")
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=".") as work:
            found = KINDS[kind](name, version, Path(work).absolute())
            shutil.copytree(found, ".", symlinks=True, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
