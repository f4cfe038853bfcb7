"""How the programs of this folder are built and started, by what ``programs.toml`` says of each."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import termios
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TABLE: dict[str, dict[str, Any]] = tomllib.loads((HERE / "programs.toml").read_text())
SOURCES = {
    f"{path.parent.name}/{path.stem}": path
    for path in sorted(HERE.glob("*/*.*"))
    if path.suffix in (".c", ".cpp", ".go", ".lua") and path.parent.name != "loaded"
}
NAMES = sorted({*SOURCES, *TABLE})
LIMITED = 20.0
"""Seconds after which a program that does not end by itself is ended, to learn its output."""
AFTERWARDS = 10.0
"""Seconds that processes which a program leaves have to end by themselves."""
END_OF_INPUT = "\x04"
"""What a terminal takes for the end of what is typed."""


def lacking(name: str) -> str:
    """What this machine does not have of what a program needs; empty where all is there."""
    flags = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "").split()
    for need in TABLE.get(name, {}).get("needs", []):
        if need.startswith("processor "):
            if need.split()[1] not in flags:
                return f"this processor has no {need.split()[1]}"
        elif not (Path(need).exists() if need.startswith("/") else shutil.which(need)):
            return f"{need} is not installed"
    return ""


def build(name: str, folder: Path) -> Path:
    """The program, in a folder of its own; its processes can be told by where its file lies."""
    row = TABLE.get(name, {})
    source = SOURCES.get(row.get("source", name))
    program = folder / "hostile"
    loaded(name, folder)
    if source and source.suffix == ".lua":
        shutil.copy(shutil.which("luajit") or "luajit", program)
    elif source and source.suffix == ".go":
        places = {"GOCACHE": str(folder / "go"), "GOFLAGS": "-mod=mod", "GO111MODULE": "off", **row.get("building", {})}
        subprocess.run(["go", "build", "-o", program, source], check=True, env={**os.environ, **places})
    else:
        _compiled(row, source, folder, program)
    return program


def _compiled(row: dict[str, Any], source: Path | None, folder: Path, program: Path) -> None:
    flags = ["-O2", "-g", "-pthread", f"-I{HERE}", *(flag.replace("{folder}", str(folder)) for flag in row.get("flags", []))]
    frame = [*flags, "-DINSIDE"] if source and "void inside(" in source.read_text() else flags
    compiler = row.get("compiler", "gcc")
    subprocess.run([compiler, *frame, "-c", HERE / "frame.c", "-o", folder / "frame.o"], check=True)
    command = ["g++", "-std=c++20"] if source and source.suffix == ".cpp" else [compiler]
    libraries = sorted((folder / "libraries").glob("*.so")) if row.get("linked") else []
    inputs = [folder / "frame.o", *([source] if source else []), *libraries]
    last = ["-Wl,--no-as-needed", *row.get("last", []), "-lm"]
    subprocess.run([*command, *flags, "-o", program, *inputs, *last], check=True)


def loaded(name: str, folder: Path) -> None:
    """The shared libraries that a program loads: one of its own, and many small ones, alike but for their names."""
    row = TABLE.get(name, {})
    if "loads" in row:
        source = HERE / "loaded" / f"{row['loads']}.c"
        subprocess.run(["gcc", "-O2", "-g", "-shared", "-fPIC", "-o", folder / "own.so", source, "-ldl"], check=True)
    for number in range(row.get("libraries", 0)):
        many = folder / "libraries"
        many.mkdir(exist_ok=True)
        if number == 0:
            source = HERE / "loaded" / "small.c"
            subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", many / "small0.so", source], check=True)
        else:
            shutil.copy(many / "small0.so", many / f"small{number}.so")


def command_line(name: str, folder: Path) -> list[str]:
    """The program with its arguments, and what starts it; ``folder`` is where it was built."""
    row, source = TABLE.get(name, {}), SOURCES.get(name)
    script = [str(source)] if source and source.suffix == ".lua" else []
    words = [*row.get("started_by", []), "./hostile", *script, *row.get("arguments", [])]
    return [word.replace("{folder}", str(folder)) for word in words]


def processes(folder: Path) -> list[int]:
    """Processes whose program lies, or lay, in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.readlink(entry / "exe").startswith(f"{folder}/"):
                found.append(int(entry.name))
    return found


def end_all(folder: Path) -> None:
    for one in processes(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def run(
    command: list[str], folder: Path, name: str, seconds: float, terminal: bool = False
) -> tuple[int, bytes, bytes, int]:
    """A command to its end, through files: a child of it that lives on may hold them open."""
    row = TABLE.get(name, {})
    (folder / "tmp").mkdir(exist_ok=True)
    own = {key: value.replace("{folder}", str(folder.parent)) for key, value in row.get("environment", {}).items()}
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), **own}
    with _input(row, folder, terminal) as stdin, (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=stdin,
            stdout=out,
            stderr=err,
            env=environment,
            preexec_fn=_take_terminal if terminal else os.setsid if row.get("terminal") else None,
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
    return status, (folder / "out").read_bytes(), (folder / "err").read_bytes(), process.pid


@contextlib.contextmanager
def _input(row: dict[str, Any], folder: Path, terminal: bool) -> Iterator[int]:
    """Its standard input: a file, or a terminal on which somebody types."""
    if not terminal:
        given = folder / "input"
        given.write_text("" if row.get("terminal") else row.get("input", ""))
        with given.open("rb") as file:
            yield file.fileno()
        return
    keyboard, screen = os.openpty()
    try:
        os.write(keyboard, (row.get("input", "") + END_OF_INPUT * row.get("ends_input", True)).encode())
        yield screen
    finally:
        os.close(screen)
        os.close(keyboard)


def _take_terminal() -> None:
    """In a session of its own, whose terminal is the standard input."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def alone(program: Path, folder: Path, name: str) -> tuple[int, bytes, int]:
    """Status and output of the program without the tool, on a copy of its own, and how many processes it leaves.

    What a daemon prints after the program has ended is its output too. Where the tool has a terminal, which it does not
    read, this run has neither input nor terminal, as the program then has."""
    folder.mkdir()
    shutil.copy(program, folder / "hostile")
    try:
        status, _, _, _ = run(command_line(name, program.parent), folder, name, LIMITED)
        deadline = time.monotonic() + AFTERWARDS
        while processes(folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        out, behind = (folder / "out").read_bytes(), len(processes(folder))
    finally:
        end_all(folder)
    return status, out, behind


def left(folder: Path, pid: int, spared: int) -> list[object]:
    """What is there after the tool has ended; the kernel may need a moment for processes. As many as one run leaves by
    itself are the program's own: those of its first run live on."""
    deadline = time.monotonic() + 10
    while len(processes(folder)) > spared and time.monotonic() < deadline:
        time.sleep(0.05)
    shared = [path.name for path in Path("/dev/shm").glob("la*") if str(pid) in path.name.split("-")]
    return [*processes(folder)[spared:], *(path.name for path in (folder / "tmp").iterdir()), *shared]
