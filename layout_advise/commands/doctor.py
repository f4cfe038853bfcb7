"""Say what this machine can do, and how to get the rest.

  layout-advise doctor
  layout-advise doctor --install         set up what is missing: packages by apt (as root), CRIU
  layout-advise doctor --install criu    only that
  layout-advise doctor --lift BINARY     which functions of a program or library can be lifted, what stops the others

Exit code 4 when something is missing without which no advice is possible.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.markup import escape

from layout_advise.commands import common, installing
from layout_advise.commands.doctoring import room
from layout_advise.commands.doctoring.calibrated import calibration
from layout_advise.commands.doctoring.diagnosis import Diagnosis
from layout_advise.commands.lifting import doctor_lift
from layout_advise.errors import MachineError, UsageError
from layout_advise.machine import vector_bytes
from layout_advise.reports.pages.console import PlainConsole, styled
from layout_advise.tracer.process.disk_space import runs_code

ADDR_NO_RANDOMIZE = 0x0040000


def _version(command: list[str]) -> str | None:
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (out.stdout or out.stderr).strip().splitlines()
    return lines[0] if lines else ""


def _tool(name: str, needed: bool, what: str, *packages: str) -> Diagnosis:
    path = shutil.which(name)
    if path is None:
        return Diagnosis(name, False, needed, f"not found: {what}", f"apt-get install {' '.join(packages)}", packages)
    return Diagnosis(name, True, needed, _version([name, "--version"]) or path, packages=packages)


def _platform() -> Diagnosis:
    machine, system = platform.machine(), platform.system()
    ok = machine == "x86_64" and system == "Linux"
    return Diagnosis("platform", ok, True, f"{system} {machine}, kernel {platform.release()}", "x86-64 Linux is needed")


def _randomisation() -> Diagnosis:
    """Tells whether address randomisation can be switched off for a child (some containers forbid personality())."""
    libc = ctypes.CDLL(None, use_errno=True)
    current = libc.personality(0xFFFFFFFF)
    ok = current != -1 and libc.personality(current | ADDR_NO_RANDOMIZE) != -1
    if ok:
        libc.personality(current)
    hint = "" if ok else "allow the personality() system call (docker: --security-opt seccomp=unconfined)"
    return Diagnosis("fixed addresses", ok, True, "personality() works" if ok else "personality() is forbidden", hint)


def _shared_memory() -> Diagnosis:
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK):
        return Diagnosis("/dev/shm", False, False, "not writable: traces and dumps go to disk", "mount a tmpfs there")
    room = shutil.disk_usage(shm).free
    text = f"{room / 2**30:.1f} GiB free"
    if not runs_code(shm):
        text += ", mounted noexec: traces and mock-ups go to disk, dumps of programs here"
    hint = "make room for traces and dumps (docker, podman: --shm-size=2g)"
    return Diagnosis("/dev/shm", room > 1 << 28, False, text, hint)


def _criu() -> Diagnosis:
    from layout_advise.tracer.snapshot.criu import find_criu

    criu = find_criu()
    if criu is None:
        hint = (
            "layout-advise doctor --install criu (as root); without it snapshots are forks, and gains below 10 % not claimed"
        )
        return Diagnosis("criu", False, False, "no CRIU that works here", hint)
    return Diagnosis("criu", True, False, f"{criu.version}")


def _valgrind() -> Diagnosis:
    """The backend for what the clone cannot copy; its tool is compiled at first use."""
    from layout_advise.tracer.backends.valgrind.install import find_valgrind

    try:
        found = find_valgrind()
    except MachineError as error:
        return Diagnosis("valgrind", False, False, f"{error.what}: {error.why}", error.hint, ("valgrind",))
    text = f"{found.version}, with headers: --backend valgrind can be built"
    return Diagnosis("valgrind", True, False, text, packages=("valgrind",))


def _pin() -> Diagnosis:
    """The other backend that runs the whole program; its tool was never run with a real kit."""
    from layout_advise.tracer.backends.pin.run import find_kit

    try:
        kit = find_kit()
    except MachineError as error:
        hint = "not needed, --backend valgrind does the same; the kit is on Intel's pages: unpack it and set PIN_ROOT"
        return Diagnosis("pin", False, False, error.why, hint)
    return Diagnosis("pin", True, False, f"{kit} (--backend pin was never run with a real kit)")


def _vectors() -> Diagnosis:
    widths = ", ".join(str(8 * n) for n in vector_bytes())
    return Diagnosis("vectors", True, False, f"{widths} bits")


CHECKS: tuple[Callable[[], Diagnosis], ...] = (
    _platform,
    _randomisation,
    lambda: _tool("gcc", True, "mock-ups cannot be compiled", "gcc", "libc6-dev"),
    lambda: _tool("as", True, "the agent cannot be assembled", "binutils"),
    lambda: _tool("make", False, "the command that `apply --build make` runs", "make"),
    lambda: _tool("clang", False, "programs made by clang are compiled with gcc's mock-ups, which is not the same", "clang"),
    _valgrind,
    _pin,
    lambda: _tool("perf", False, "the built-in sampler is used", "linux-perf"),
    _criu,
    _shared_memory,
    room.memory,
    room.open_files,
    room.cache,
    room.tracing,
    _vectors,
    calibration,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``doctor``."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--install", metavar="NAME", nargs="*", help="set up what is missing, or only what is named (as it is listed)"
    )
    doctor_lift.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``doctor``."""
    if arguments.lift is not None:
        return doctor_lift.run(arguments)
    findings = [check() for check in CHECKS]
    if arguments.install is not None:
        _install(findings, arguments.install)
        findings = [check() for check in CHECKS]
    if arguments.json:
        print(json.dumps([asdict(f) for f in findings], indent=1))
    else:
        colour = common.wants_colour("auto")
        console = PlainConsole(file=styled(sys.stdout), highlight=False, no_color=not colour, width=common.width())
        for finding in findings:
            mark = "[green]ok     [/]" if finding.ok else ("[red]missing[/]" if finding.needed else "[yellow]absent [/]")
            console.print(f"{mark} {finding.name}: {escape(finding.text)}", soft_wrap=True)
            if not finding.ok and finding.hint:
                console.print(f"        {finding.hint}", soft_wrap=True, markup=False)
    _raise_for_missing(findings)
    return 0


def _install(findings: Sequence[Diagnosis], names: Sequence[str]) -> None:
    """Set up what is missing. What cannot be had is told and no error: the findings say what that means."""
    known = [finding.name for finding in findings if finding.packages or finding.name == installing.CRIU]
    if wrong := sorted(set(names) - set(known)):
        raise UsageError(f"cannot install {', '.join(wrong)}", "", f"what it can: {', '.join(known)}")
    missing = [finding for finding in findings if not finding.ok and (not names or finding.name in names)]
    packaged = [functools.partial(installing.install_packages, finding.packages) for finding in missing if finding.packages]
    steps: list[Callable[[], None]] = [
        *packaged,
        *(installing.install_criu for finding in missing if finding.name == installing.CRIU),
    ]
    for step in steps:
        try:
            step()
        except MachineError as error:
            print(f"layout-advise: {error.line()}", file=sys.stderr)


def _raise_for_missing(findings: Sequence[Diagnosis]) -> None:
    missing = [f.name for f in findings if f.needed and not f.ok]
    if missing:
        raise MachineError(f"missing: {', '.join(missing)}", "no advice is possible without", "see the hints above")
