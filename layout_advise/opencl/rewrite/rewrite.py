"""A kernel program in other layouts: new source, with what its kernels are given now."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from layout_advise.apply.rewrite.fields import fields_of
from layout_advise.apply.rewrite.syntax import Edit, applied
from layout_advise.errors import SourceError
from layout_advise.opencl.rewrite import accessors
from layout_advise.opencl.rewrite.expressions import BufferTarget, KernelExpressions, atomic_members
from layout_advise.opencl.rewrite.layouts import BufferLayout, layout
from layout_advise.opencl.source.kernels import BufferRecord, KernelProgram, space_of
from layout_advise.opencl.source.read import read_program

NOTE = """static void layout_advise_note(__global uint *log, uint member)
{
    if (log == 0)
        return;
    const uint at = log[1]++;
    if (at + 2 < log[0])
        log[at + 2] = member;
}
"""


@dataclass(frozen=True, slots=True)
class RewrittenKernels:
    """The source; in each kernel the parameter of a record has become one for each cluster, in their order."""

    text: str
    options: str
    layouts: tuple[BufferLayout, ...]


def rewritten(program: KernelProgram, layouts: Sequence[BufferLayout]) -> RewrittenKernels:
    """The program with its records in new layouts, one after the other. Raises SourceError with the first place that cannot
    be rewritten."""
    current = program
    for one in layouts:
        record = next(record for record in current.records if record.name == one.record.name)
        groups = layout(record, one.partition, one.tiles)
        current = read_program(_text(current, groups, program, None), " ".join(program.source.options))
    return RewrittenKernels(current.source.text, " ".join(program.source.options), tuple(layouts))


def instrumented(program: KernelProgram, record: BufferRecord) -> RewrittenKernels:
    """The program as it is, with each access to a member of ``record`` noted in a log of its work item. A kernel with the
    record gets, behind its last buffer of these, the log, the room that a work item has in it, and of how many items one is
    noted."""
    same = layout(record, (tuple(range(len(record.members))),), (1,))
    notes = {member.name: number for number, member in enumerate(record.members)}
    text = _text(program, same, program, notes)
    return RewrittenKernels(text, " ".join(program.source.options), (same,))


def atomics(program: KernelProgram, record: BufferRecord) -> frozenset[str]:
    """Members of a record that atomic functions are given: they stay in one cluster."""
    return atomic_members(program.program, _target(program, record, "global", "layout_advise"))


def _text(program: KernelProgram, one: BufferLayout, first: KernelProgram, notes: Mapping[str, int] | None) -> str:
    text = program.source.text
    prefix = _prefix(one.record.name, text)
    space = _space(program, one.record)
    target = _target(program, one.record, space, prefix)
    expressions = KernelExpressions(program.program, target, program.kernels, len(one.clusters), notes is not None)
    edits: set[Edit] = set()
    for unit in program.program.units:
        for top in unit.declarations:
            edits.update(expressions.edits(top))
    for refusal in sorted(expressions.refusals):
        line = first.source.line(refusal.line) if program is first else refusal.line
        raise SourceError(f"cannot lay out {one.record.name} anew", f"line {line}: {refusal.why}", "it stays as it is")
    for before, after in pairwise(sorted(edits)):
        if after.start < before.end:
            raise SourceError(f"cannot lay out {one.record.name} anew", "two changes of one place", "it stays as it is")
    helpers = _helpers(one, prefix, f"__{space}", notes)
    at = _behind(program, one.record)
    return applied(text, [*edits, Edit(at, at, helpers)])


def _helpers(one: BufferLayout, prefix: str, space: str, notes: Mapping[str, int] | None) -> str:
    head = NOTE if notes is not None else ""
    numbers = dict(notes) if notes is not None else None
    made = accessors.functions(one, prefix, space, numbers)
    return f"\n{head}{accessors.ref_type(one, prefix, space, notes is not None)}\n{made}\n"


def _target(program: KernelProgram, record: BufferRecord, space: str, prefix: str) -> BufferTarget:
    fields = fields_of(record.node, True)
    return BufferTarget(record.usr, prefix, record.name, record.bytes, fields, (), prefix, space=space)


def _prefix(name: str, text: str) -> str:
    prefix = "la_" + re.sub(r"\W+", "_", name.removeprefix("struct "))
    while re.search(rf"\b{prefix}_", text):
        prefix += "_"
    return prefix


def _space(program: KernelProgram, record: BufferRecord) -> str:
    """The address space of all pointers to the record in buffers."""
    found = {
        space_of(node.shape.of)
        for unit in program.program.units
        for top in unit.declarations
        for node in top.walk()
        if node.kind == "PARM_DECL" and node.shape.of is not None and node.shape.of.record == record.usr
    } & {"global", "constant"}
    if len(found) > 1:
        raise SourceError(
            f"cannot lay out {record.name} anew", "it is in global and in constant memory", "it stays as it is"
        )
    return found.pop() if found else "global"


def _behind(program: KernelProgram, record: BufferRecord) -> int:
    """The place behind the declaration of a record."""
    tops = [top for unit in program.program.units for top in unit.declarations]
    own = [top for top in tops if top.start <= record.node.start and record.node.end <= top.end]
    return program.source.text.index(";", max(top.end for top in own) - 1) + 1
