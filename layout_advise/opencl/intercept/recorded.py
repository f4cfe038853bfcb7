"""The launches that the recorder wrote, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from layout_advise.errors import MachineError, ProgramError, SourceError
from layout_advise.opencl.host.launch import Argument, BufferArgument, Bytes, Launch, LocalArgument, ValueArgument
from layout_advise.opencl.host.platforms import GET_PLATFORM
from layout_advise.opencl.host.session import complaint
from layout_advise.opencl.intercept.events import BufferEvent, read_events

LEFT_ALONE = {
    "image": "it is given an image, a pipe or a sampler",
    "part": "it is given a part of a buffer (a sub-buffer)",
    "shared": "it is given shared virtual memory",
}
"""Reasons by the recorder's word for an argument."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedLaunches:
    """The first launch of each kernel; ``shares`` is the part of all kernels' time by name, ``notes`` what was left
    alone. ``events`` are all accesses to buffers (None: not known), ``kernels`` the launches by their numbers in these."""

    launches: tuple[Launch, ...]
    shares: dict[str, float]
    notes: tuple[str, ...]
    events: tuple[BufferEvent, ...] | None = None
    kernels: tuple[Launch | None, ...] = ()

    @property
    def numbers(self) -> tuple[int | None, ...]:
        """The launch, by number, that each kernel of the events is."""
        known = {id(launch): number for number, launch in enumerate(self.launches)}
        return tuple(known.get(id(launch)) for launch in self.kernels)


def read_recorded(folder: Path, program: str) -> RecordedLaunches:
    """The launches in a folder of the recorder. Raises ProgramError where there is none."""
    if not (folder / "counts").exists():
        what = f"nothing to advise on in {program}"
        tell_of_failure(folder, what)
        raise ProgramError(what, "it launched no kernel through libOpenCL", "give it arguments with which it does")
    rows = [line.rsplit(" ", 3) for line in (folder / "counts").read_text().splitlines()]
    total = sum(float(row[3]) for row in rows) or 1.0
    shares: dict[str, float] = {}
    launches: list[Launch] = []
    notes: list[str] = []
    kernels: list[Launch | None] = []
    for number, (name, calls, rounds, seconds) in enumerate(rows):
        shares[name] = shares.get(name, 0.0) + float(seconds) / total
        each = max(1, int(calls) // max(1, int(rounds)))
        found = _launch(folder / str(number), name, each)
        kernels.append(found if isinstance(found, Launch) else None)
        if isinstance(found, Launch):
            launches.append(found)
        else:
            notes.append(f"{name} is left alone: {found}.")
    return RecordedLaunches(tuple(launches), shares, tuple(notes), read_events(folder / "order"), tuple(kernels))


def tell_of_failure(folder: Path, what: str) -> None:
    """Raises MachineError where the program found no platform, SourceError where a program of it did not build; returns
    where neither was seen."""
    if (folder / "platforms").exists():
        raise MachineError(what, "it finds no OpenCL platform", GET_PLATFORM)
    if (folder / "failed").exists():
        log = (folder / "failed").read_text(errors="replace")
        raise SourceError(what, f"its kernels do not build: {complaint(log)}")


def _launch(folder: Path, name: str, calls: int) -> Launch | str:
    """A launch, or why it cannot be studied."""
    if not (folder / "launch").exists():
        return "its launch could not be written down"
    if (folder / "linked").exists():
        return "its program was linked of several, there is no one source to read"
    if not (folder / "source").exists():
        return "its program was made of a binary, there is no source to read"
    lines = [line.split() for line in (folder / "launch").read_text().splitlines()]
    sizes = {line[0]: tuple(map(int, line[1:])) for line in lines if line[0] in ("global", "local", "offset")}
    given = _arguments(folder, [line for line in lines if line[0] not in ("kernel", *sizes)])
    if isinstance(given, str):
        return given
    arguments, buffers = given
    source = (folder / "source").read_text(encoding="latin-1")
    options = (folder / "options").read_text(encoding="latin-1")
    offset = sizes.get("offset")
    return Launch(
        source,
        options,
        name,
        arguments,
        buffers,
        sizes["global"],
        sizes.get("local"),
        offset if offset and any(offset) else None,
        calls,
    )


def _arguments(folder: Path, lines: Sequence[Sequence[str]]) -> tuple[tuple[Argument, ...], tuple[Bytes, ...]] | str:
    known: list[str] = []
    buffers: list[Bytes] = []
    arguments: list[Argument] = []
    for number, (word, *rest) in enumerate(lines):
        if word in LEFT_ALONE:
            return LEFT_ALONE[word]
        if word == "buffer":
            if rest[0] not in known:
                data = folder / f"b{number}"
                if not data.exists() or data.stat().st_size != int(rest[1]):
                    return "a buffer of it could not be read"
                known.append(rest[0])
                buffers.append(np.fromfile(data, dtype=np.uint8))
            arguments.append(BufferArgument(known.index(rest[0])))
        elif word == "scratch":
            arguments.append(LocalArgument(int(rest[0])))
        else:
            arguments.append(ValueArgument(bytes.fromhex(rest[0] if rest else "")))
    return tuple(arguments), tuple(buffers)
