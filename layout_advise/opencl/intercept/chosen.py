"""The kernels of a host program that are studied: those with structures in their buffers and most of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layout_advise.errors import SourceError
from layout_advise.opencl.host.launch import Launch
from layout_advise.opencl.intercept.recorded import RecordedLaunches
from layout_advise.opencl.source.read import read_program


def chosen(found: RecordedLaunches, most: int, others: bool = False) -> RecordedLaunches:
    """The launches of at most so many kernels with structures, those with most time first; with ``others`` all kernels
    without structures as well, and where no kernel has one, those with most time. Notes name what is left."""
    order = sorted(found.launches, key=lambda launch: -found.shares[launch.kernel])
    known: dict[tuple[str, str], frozenset[str] | None] = {}
    held = [launch for launch in order if _holds_structures(launch, known)]
    plain = [launch for launch in order if launch not in held]
    kept = held[:most] if held else plain[:most]
    notes = _note(held[most:] if held else plain[most:], "less of the time and {was} not looked at (--most-kernels)")
    if held and others:
        kept = [launch for launch in order if launch in kept or launch in plain]
    elif held:
        notes = (*_note(plain, "no structure in {its} buffers"), *notes)
    return replace(found, launches=tuple(kept), notes=(*found.notes, *notes))


def _holds_structures(launch: Launch, known: dict[tuple[str, str], frozenset[str] | None]) -> bool:
    """True as well where the source cannot be read: that is for the study to tell."""
    program = launch.source, launch.options
    if program not in known:
        try:
            read = read_program(*program, launch.name)
            known[program] = frozenset(kernel.name for kernel in read.kernels if read.records_of(kernel))
        except SourceError:
            known[program] = None
    names = known[program]
    return names is None or launch.kernel in names


def _note(launches: Sequence[Launch], what: str) -> tuple[str, ...]:
    names = list(dict.fromkeys(launch.kernel for launch in launches))
    if not names:
        return ()
    several = len(names) > 1
    text = what.format(was="were" if several else "was", its="their" if several else "its")
    return (f"{', '.join(names)} {'have' if several else 'has'} {text}.",)
