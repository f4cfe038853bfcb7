"""The code that a traced call did not run, by the clone's marks and by single steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.tracer.backends.clone.address import choose_address
from layout_advise.tracer.backends.clone.image import build_clone
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.process.ptraced import PtracedProgram
from layout_advise.tracer.program.binary import ElfBinary
from tests.support.clone_programs import build, region_of
from tests.support.tracing.parked_programs import parked


def visited(program: Path, call: int) -> set[int]:
    """The addresses of the region's instructions that the call runs, less the load base."""
    with PtracedProgram([str(program)]) as process:
        base = process.load_base(program)
        region = region_of(program, base)
        process.run_to(region.entry, call)
        top, found = process.registers().rsp, set()
        while process.registers().rsp <= top:
            found.add(process.registers().rip - base)
            process.step()
    return found


@pytest.mark.parametrize(("name", "callees"), [("pointer", {"up", "down"}), ("pointers", set())])
def test_what_indirect_calls_call_is_noticed(tmp_path: Path, name: str, callees: set[str]) -> None:
    """Up to four functions; of a call of six it is not known."""
    program = build(tmp_path, name, "-O2")
    with parked(program, 2) as process:
        base = process.load_base
        trace = trace_call(process, region_of(program, base), 2, folder=tmp_path)
    ((_, targets),) = trace.called
    binary = ElfBinary.open(str(program))
    assert targets == tuple(sorted(binary.find(callee).start + base for callee in callees))


@pytest.mark.parametrize(("name", "flags"), [("triangle", ("-O2",)), ("switch", ("-O2",)), ("particles", ("-O2",))])
def test_marks_are_where_single_steps_came(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, name, *flags)
    ran = visited(program, 2)
    with parked(program, 2) as process:
        base = process.load_base
        region = region_of(program, base)
        trace = trace_call(process, region, 2, folder=tmp_path)
        marks = build_clone(region, choose_address(process.mappings(), region.entry)).marks
    untaken = {at - base for at in trace.untaken}
    assert untaken <= {at - base for at in marks}
    assert {at - base for at in marks} - untaken == {at - base for at in marks} & ran
    assert region.entry - base not in untaken
