"""The accesses to the fields of a structure by the thread of a parallel region that makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from layout_advise.layoutalgebra.derive.atoms import counted_fields
from layout_advise.layoutalgebra.derive.structure import Field, Structure
from layout_advise.observe.observe import Observation, accesses_to, object_at
from layout_advise.reports.model.structure import StructureReport, ThreadUse


def with_threads(report: StructureReport, structure: Structure, seen: Observation) -> StructureReport:
    """The report of a structure with the accesses of each thread of the traced call to its fields; as it is where there is
    one thread only, or where the accesses of one are not known exactly."""
    known = by_thread(structure, seen)
    if len(known) < 2:
        return report
    fields = tuple(
        msgspec.structs.replace(
            use, threads=tuple(ThreadUse(thread, own[n].reads, own[n].writes) for thread, own in known.items())
        )
        for n, use in enumerate(report.fields)
    )
    return msgspec.structs.replace(report, fields=fields)


def by_thread(structure: Structure, seen: Observation) -> Mapping[int, tuple[Field, ...]]:
    """The fields of ``structure`` with the reads and writes of each thread, by its number."""
    part = object_at(seen, structure.block_base or structure.base, structure.bytes)
    if part is None or seen.team is None or structure.inexact or structure.via is not None:
        return {}
    touched, attribution, trace = part
    found: dict[int, tuple[Field, ...]] = {}
    for thread in sorted(thread.number for thread in seen.team.threads):
        own = tuple(number for number in touched.references if trace.references[number].thread == thread)
        accesses, inexact = accesses_to([(replace(touched, references=own), attribution, trace)])
        fields = counted_fields(structure.fields, accesses, structure.base, structure.element_bytes)
        if fields is None or inexact:
            return {}
        found[thread] = fields
    return found
