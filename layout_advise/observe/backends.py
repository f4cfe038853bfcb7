"""The choice of a tracing backend, and the part of the trace that the later stages get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from layout_advise.config import Settings
from layout_advise.errors import LayoutAdviseError, MachineError, ProgramError, TraceError
from layout_advise.layoutalgebra.sets.spans import AddressSpan, spans
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.clone.record_team import trace_region
from layout_advise.tracer.backends.pin.run import find_kit, trace_with_pin
from layout_advise.tracer.backends.step.record import trace_step_by_step
from layout_advise.tracer.backends.valgrind.install import find_valgrind
from layout_advise.tracer.backends.valgrind.record import trace_under_valgrind
from layout_advise.tracer.code.instructions import functions_of
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.folding.execution_order import of_kept
from layout_advise.tracer.folding.relocate import Foreign
from layout_advise.tracer.process.disk_space import RECORD_BYTES
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.trace.trace import Trace

RSP = 4
_NO_CLONE = "no clone"  # how the clone's refusals begin
_ELSEWHERE = "ask for another call or hotspot with --call or --hotspot"


def check_backend(settings: Settings) -> None:
    """Raise :class:`MachineError` where the backend that the user names is not there, before anything runs."""
    if settings.backend == "valgrind":
        find_valgrind()
    if settings.backend == "pin":
        find_kit()


@dataclass(frozen=True, slots=True)
class Tracer:
    """Traces calls of one hotspot. ``region_at`` gives its code at a load base, ``note`` takes what is to be said."""

    settings: Settings
    entry: Entry
    region_at: Callable[[int], Region]
    stdin: Path | None
    work: Path | None
    note: Callable[[str], None]

    def trace(self, program: AgentProcess, call: int) -> Trace:
        """The trace of the call at which ``program`` is parked, ``limits`` telling why it was cut where it was. Raises the
        errors of the backend."""
        return self._limited(self._trace(program, call))

    def clone(self, program: AgentProcess, call: int, calls: int = 1) -> Trace:
        """The same by the clone and nothing else: loops, and batches of so many ``calls``, are traced in no other way."""
        found = trace_call(program, self.region_at(program.load_base), call, self.records, folder=self.work)
        return self._limited(replace(found, calls=calls))

    def _limited(self, found: Trace) -> Trace:
        """``found`` with its ``limits`` where it was cut, which are told."""
        if not found.truncated:
            return found
        share = ", an equal share for each thread" if found.threads else ""
        limits = found.limits or (f"cut after {found.accesses:,} accesses ({self._limit(found.backend)}{share})",)
        for text in limits:
            self.note(f"layout-advise: the trace was {text}")
        return replace(found, limits=limits)

    @property
    def records(self) -> int:
        """Records of the clone at most."""
        room = self.settings.max_bytes
        return self.settings.max_refs if room is None else max(1, min(self.settings.max_refs, room // RECORD_BYTES))

    def _limit(self, backend: str) -> str:
        """The option that cuts a trace first."""
        if backend == "clone" and self.records < self.settings.max_refs:
            return f"--max-bytes {self.settings.max_bytes}, {RECORD_BYTES} a record"
        return f"--max-refs {self.settings.max_refs}"

    def _trace(self, program: AgentProcess, call: int) -> Trace:
        region = self.region_at(program.load_base)
        backend = self.settings.backend
        if self.entry.outlined is not None:
            return self._team(program, region, call)
        if backend == "valgrind":
            return self._said(self._valgrind(program, region, call), region)
        if backend == "pin":
            return self._said(self._pin(program, region, call), region)
        if backend == "step":
            return self._said(self._step(program, call), region)
        try:
            return trace_call(program, region, call, self.records, folder=self.work)
        except TraceError as error:
            if backend != "auto" or not error.what.startswith(_NO_CLONE):
                raise
            return self._instead(program, region, call, error)

    def _team(self, program: AgentProcess, region: Region, call: int) -> Trace:
        if self.settings.backend not in ("auto", "clone"):
            what = f"no trace of the parallel region {region.symbol} with --backend {self.settings.backend}"
            raise TraceError(what, "only the clone traces all its threads", "leave --backend out")
        with program.fork() as copy:
            return trace_region(program, copy, region, call, self.records, folder=self.work)

    def _instead(self, program: AgentProcess, region: Region, call: int, refused: TraceError) -> Trace:
        """Under Valgrind what the clone refused, else step by step; where neither works, one error with all reasons, that of
        the clone first."""
        try:
            found = self._valgrind(program, region, call)
        except (MachineError, TraceError, ProgramError) as error:
            valgrind = error
        else:
            self.note(f"{refused.what}: {refused.why}; traced under Valgrind instead")
            return self._said(found, region)
        try:
            found = self._step(program, call)
        except (TraceError, ProgramError) as error:
            step = "the same" if error.what == refused.what else _reason(error)
            why = f"{refused.why}; under Valgrind: {_reason(valgrind)}; step by step: {step}"
            hint = _ELSEWHERE if isinstance(valgrind, TraceError) else valgrind.hint  # not "use the clone"
            raise TraceError(refused.what, why, hint) from error
        reasons = f"{refused.what}: {refused.why}; under Valgrind: {_reason(valgrind)}"
        self.note(f"{reasons}; traced step by step instead")
        return self._said(found, region)

    def _valgrind(self, program: AgentProcess, region: Region, call: int) -> Foreign:
        return trace_under_valgrind(
            program,
            self._command(),
            self.entry,
            region,
            call,
            self.settings.max_refs,
            stdin_path=self.stdin,
            timeout=self.settings.timeout,
            folder=self.work,
        )

    def _pin(self, program: AgentProcess, region: Region, call: int) -> Foreign:
        return trace_with_pin(
            program,
            self._command(),
            self.entry,
            region,
            call,
            self.settings.max_refs,
            stdin_path=self.stdin,
            timeout=self.settings.timeout,
            folder=self.work,
        )

    def _step(self, program: AgentProcess, call: int) -> Foreign:
        return trace_step_by_step(
            program,
            self._command(),
            self.entry,
            self.region_at,
            program.load_base,
            call,
            stdin_path=self.stdin,
            timeout=self.settings.timeout,
        )

    def _command(self) -> Sequence[str]:
        return self.settings.command

    def _said(self, found: Foreign, region: Region) -> Trace:
        for text in found.notes:
            self.note(text)
        return found.trace if self.settings.until == "trace" else relevant(found.trace, region)


def _reason(error: LayoutAdviseError) -> str:
    """An error's what and why, without what to do."""
    return f"{error.what}: {error.why}" if error.why else error.what


def relevant(trace: Trace, region: Region) -> Trace:
    """Without the accesses of code that is not lifted and that touches nothing that the lifted code touches: the linkage
    table, tables of the mathematical library. What does touch the same memory stays, and stands in the way of a change."""
    code = functions_of(region)
    own = [any(function.contains(r.pc) for function in code) for r in trace.references]
    touched = [
        span
        for reference, inside in zip(trace.references, own, strict=True)
        if inside
        for span in _data(trace, reference.id)
    ]
    keep = [i for i, inside in enumerate(own) if inside or any(_overlap(a, b) for a in _data(trace, i) for b in touched)]
    streams = tuple(trace.streams[i] for i in keep)
    return replace(
        trace,
        references=tuple(replace(trace.references[i], id=n) for n, i in enumerate(keep)),
        streams=streams,
        accesses=sum(stream.count for stream in streams if stream is not None),
        control=of_kept(trace.control, keep) if trace.control is not None else None,
    )


def _data(trace: Trace, reference: int) -> list[AddressSpan]:
    """The ranges that the reference accesses, without the frames below the entry; within a heap block, the whole block."""
    stream = trace.streams[reference]
    top = trace.registers.gpr[RSP] + 8
    stack = next((m for m in trace.mappings if m.start <= top < m.end), None)
    found = []
    for span in spans(stream) if stream is not None else ():
        if stack is not None and stack.start <= span.low < top:
            continue
        block = next((a for a in trace.allocations if a.address <= span.low < a.address + a.bytes), None)
        if block is not None:
            span = replace(span, low=block.address, high=max(span.high, block.address + block.bytes - 1))
        found.append(span)
    return found


def _overlap(a: AddressSpan, b: AddressSpan) -> bool:
    return a.low <= b.high and b.low <= a.high
