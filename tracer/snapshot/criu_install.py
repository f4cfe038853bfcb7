"""Finding a CRIU that works on this machine, and installing a private one where the distribution's does not.

Debian 12 ships CRIU 3.17.1, which fails on current kernels ("Unexpected rt vDSO area bounds"); 4.2.1 works. The private one
comes from a later Debian through an apt root of its own (own state, own cache, the system's keyring), is unpacked without
being installed, and runs with its own C library. Nothing of the system changes.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from layout_advise.errors import MachineError
from layout_advise.tracer.snapshot.private_apt import KEYRING, private_apt

SUITE = "forky"
FILES = 1024
"""How many files CRIU must be able to have open: it numbers its own above the program's."""
_LIBRARIES = "usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True, slots=True)
class Criu:
    """A CRIU that passed ``criu check``; ``path`` is the program or its wrapper."""

    path: Path
    version: str


def private_folder() -> Path:
    """The folder of the private CRIU: ``.tools/criu`` in a checkout, else below the user's cache."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file():
        return checkout / ".tools" / "criu"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "layout-advise" / "criu"


def find_criu() -> Criu | None:
    """The first CRIU that passes its own check: ``LAYOUT_ADVISE_CRIU`` (and no other), the system's, the private one."""
    chosen = os.environ.get("LAYOUT_ADVISE_CRIU")
    if chosen is not None:
        return check(Path(chosen))
    # Debian puts it in /usr/sbin, which is not on every user's path.
    system = shutil.which("criu", path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/usr/local/sbin")
    found = check(Path(system)) if system else None
    return found or check(private_folder() / "criu")


def with_files() -> list[str]:
    """The beginning of a command that may have so many files open where we may not; the program gets its own limit back."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= FILES:
        return []
    raised = FILES if hard != resource.RLIM_INFINITY and hard < FILES else ""
    return ["prlimit", f"--nofile={FILES}:{raised}"]


def check(program: Path) -> Criu | None:
    """``program`` and its version, if it can dump and restore here; ``None`` if it is missing or says that it cannot, or if
    too few files may be open for it."""
    try:
        if _run([*with_files(), str(program), "check"]).returncode != 0:
            return None
        words = _run([str(program), "--version"]).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Criu(program.absolute(), words[1]) if len(words) > 1 and words[0] == "Version:" else None


def install(folder: Path) -> Criu:
    """Download and unpack a private CRIU below ``folder`` (about 8 MB of packages, 29 MB unpacked).

    Raises :class:`MachineError` where there is no apt, no keyring or no network, or where this CRIU does not work either.
    """
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise MachineError("cannot install CRIU", f"there is no {tool}", "install criu 4.2 or newer by hand")
    if not KEYRING.is_file():
        raise MachineError("cannot install CRIU", f"{KEYRING} is missing", "install debian-archive-keyring")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Built beside its place and moved there at once: an interrupted run leaves nothing half done.
    with tempfile.TemporaryDirectory(prefix=".criu-", dir=folder.parent) as name:
        work = Path(name)
        _download(work / "apt")
        fresh = work / "criu"
        (fresh / "root").mkdir(parents=True)
        for package in sorted((work / "apt" / "archives").glob("*.deb")):
            _must(["dpkg", "-x", str(package), str(fresh / "root")], "unpack CRIU")
        _write_wrapper(fresh / "criu")
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    found = check(folder / "criu")
    if found is None:  # kept: in an image that is built without privileges it may work later, where the image runs
        answer = _run([str(folder / "criu"), "check"])
        why = _last_line(answer.stderr or answer.stdout)
        if os.geteuid() != 0:
            why = "it needs root"
        raise MachineError("CRIU does not work here", why, "snapshots are taken by fork instead")
    return found


def _download(apt: Path) -> None:
    environment = private_apt(apt, SUITE)
    _must(["apt-get", "-q", "update"], "read Debian's package lists", environment)
    _must(
        ["apt-get", "-q", "-y", "--download-only", "--no-install-recommends", "install", "criu"],
        "download CRIU",
        environment,
    )


def _write_wrapper(path: Path) -> None:
    path.write_text(
        "#!/bin/sh\n"
        "# CRIU with the C library that it was built for.\n"
        'here=$(dirname "$(readlink -f "$0")")/root\n'
        f'exec "$here/{_LIBRARIES}/ld-linux-x86-64.so.2" --library-path "$here/{_LIBRARIES}" "$here/usr/sbin/criu" "$@"\n'
    )
    path.chmod(0o755)


def _run(command: list[str], environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=600,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def _must(command: list[str], what: str, environment: dict[str, str] | None = None) -> None:
    done = _run(command, environment)
    if done.returncode != 0:
        raise MachineError(
            f"cannot {what}", _last_line(done.stderr), "see to the network, or install criu 4.2 or newer by hand"
        )


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def main() -> int:
    """Make sure that there is a CRIU that works; prints which. Returns 4 where there is none."""
    try:
        criu = find_criu() or install(private_folder())
    except MachineError as error:
        print(f"criu: {error}", file=sys.stderr)
        return error.exit_code
    print(f"criu: {criu.version} ({criu.path})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
