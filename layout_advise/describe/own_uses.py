"""The accesses to the fields of a structure that the region makes itself, in all and by thread.

A region's structures have the fields and accesses of all regions of the run that use them, as layouts are the same in all of
them; and those of further calls, where buffers take each other's place. The report tells what its own traced call does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from layout_advise.layoutalgebra.derive.atoms import counted_fields
from layout_advise.layoutalgebra.derive.structure import Field, Structure
from layout_advise.observe.observe import Observation, accesses_to, object_at
from layout_advise.reports.model.structure import FieldUse, StructureReport, ThreadUse


def with_own_uses(report: StructureReport, structure: Structure, seen: Observation) -> StructureReport:
    """The report of a structure with the reads and writes of the traced call; as it is where these are not known exactly."""
    own = own_uses(structure, seen)
    if own is None:
        return report
    threads = by_thread(structure, seen)
    fields = tuple(
        _with_own(use, structure.fields[n], own[n], {t: fields[n] for t, fields in threads.items()})
        for n, use in enumerate(report.fields)
    )
    return msgspec.structs.replace(report, fields=fields)


def own_uses(structure: Structure, seen: Observation) -> tuple[Field, ...] | None:
    """The fields of ``structure`` with the reads and writes of the traced call; None where they are not known exactly."""
    return _counted(structure, seen, None)


def by_thread(structure: Structure, seen: Observation) -> Mapping[int, tuple[Field, ...]]:
    """The same for each thread of a parallel region, by its number; empty where there is one thread only."""
    numbers = sorted(thread.number for thread in seen.team.threads) if seen.team is not None else []
    if len(numbers) < 2:
        return {}
    known = {number: _counted(structure, seen, number) for number in numbers}
    return {number: fields for number, fields in known.items() if fields is not None}


def _counted(structure: Structure, seen: Observation, thread: int | None) -> tuple[Field, ...] | None:
    part = object_at(seen, structure.block_base or structure.base, structure.bytes)
    if part is None or structure.inexact or not structure.placed:
        return None
    touched, attribution, trace = part
    own = tuple(n for n in touched.references if thread is None or trace.references[n].thread == thread)
    accesses, inexact = accesses_to([(replace(touched, references=own), attribution, trace)])
    if inexact:
        return None
    return counted_fields(structure.fields, accesses, structure.base, structure.element_bytes)


def _with_own(use: FieldUse, every: Field, own: Field, threads: Mapping[int, Field]) -> FieldUse:
    """A field with its own accesses. One that is used, but not by the call, is used by what it is united with."""
    used, used_here = every.reads + every.writes > 0, own.reads + own.writes > 0
    return msgspec.structs.replace(
        use, reads=own.reads, writes=own.writes, beside=used and not used_here, threads=_shares(threads)
    )


def _shares(threads: Mapping[int, Field]) -> tuple[ThreadUse, ...]:
    return tuple(ThreadUse(number, field.reads, field.writes) for number, field in threads.items())
