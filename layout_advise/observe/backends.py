"""Chooses the backend that traces a call, and keeps of its trace what the later stages need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from layout_advise.config import Settings
from layout_advise.errors import LayoutAdviseError, MachineError, ProgramError, RefusedError, TraceError
from layout_advise.layoutalgebra.sets.spans import AddressSpan, spans
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.protocol import Rerun, TracedCall, TraceRequest
from layout_advise.tracer.backends.registry import automatic_backends, backend_named
from layout_advise.tracer.code.instructions import functions_of
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.folding.execution_order import of_kept
from layout_advise.tracer.process.disk_space import RECORD_BYTES
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.trace.trace import Trace

RSP = 4
_ELSEWHERE = "ask for another call or hotspot with --call or --hotspot"


def check_backend(settings: Settings) -> None:
    """Raises :class:`MachineError` where the backend that the user names is not there, before anything runs."""
    if settings.backend != "auto":
        backend_named(settings.backend).check()


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
        """The trace of the call at which ``program`` is parked, by the backend that the user names or else by the first that
        can. ``limits`` tells why it was cut where it was. Raises the errors of the backend."""
        settings = self.settings
        rerun = Rerun(
            settings.command, self.entry, call, settings.max_refs, self.stdin, timeout=settings.timeout, folder=self.work
        )
        request = TraceRequest(program, self.region_at, rerun, self.records)
        found = self._by_first_able(request) if settings.backend == "auto" else self._by_named(request)
        for text in found.notes:
            self.note(text)
        trace = found.trace if settings.until == "trace" else relevant(found.trace, request.region)
        return self._limited(trace)

    def clone(self, program: AgentProcess, call: int, calls: int = 1) -> Trace:
        """The same by the clone and nothing else: loops, and batches of so many ``calls``, are traced in no other way."""
        found = trace_call(program, self.region_at(program.load_base), call, self.records, folder=self.work)
        return self._limited(replace(found, calls=calls))

    @property
    def records(self) -> int:
        """Records at most, of a backend that keeps them."""
        room = self.settings.max_bytes
        return self.settings.max_refs if room is None else max(1, min(self.settings.max_refs, room // RECORD_BYTES))

    def _limited(self, found: Trace) -> Trace:
        """``found`` with its ``limits`` where it was cut, which are told."""
        if not found.truncated:
            return found
        share = ", an equal share for each thread" if found.threads else ""
        limits = found.limits or (f"cut after {found.accesses:,} accesses ({self._limit(found.backend)}{share})",)
        for text in limits:
            self.note(f"layout-advise: the trace was {text}")
        return replace(found, limits=limits)

    def _limit(self, backend: str) -> str:
        """The option that cuts a trace first."""
        if backend_named(backend).keeps_records and self.records < self.settings.max_refs:
            return f"--max-bytes {self.settings.max_bytes}, {RECORD_BYTES} a record"
        return f"--max-refs {self.settings.max_refs}"

    def _by_named(self, request: TraceRequest) -> TracedCall:
        backend = backend_named(self.settings.backend)
        if request.team and not backend.teams:
            what = f"no trace of the parallel region {request.region.symbol} with --backend {backend.name}"
            raise TraceError(what, "only the clone traces all its threads", "leave --backend out")
        return backend.trace(request)

    def _by_first_able(self, request: TraceRequest) -> TracedCall:
        """By the first automatic backend, or by the next one where that refuses the code; where none works, one error with
        all reasons, that of the first in front."""
        first, *others = automatic_backends(team=request.team)
        try:
            return first.trace(request)
        except RefusedError as error:
            refused = error
        reasons, hint = [refused.why], refused.hint
        for backend in others:
            try:
                found = backend.trace(request)
            except (MachineError, TraceError, ProgramError) as error:
                if len(reasons) == 1:
                    hint = _ELSEWHERE if isinstance(error, TraceError) else error.hint  # not "use the clone"
                reasons.append(f"{backend.manner}: {'the same' if error.what == refused.what else _reason(error)}")
            else:
                self.note(f"{refused.what}: {'; '.join(reasons)}; traced {backend.manner} instead")
                return found
        raise TraceError(refused.what, "; ".join(reasons), hint) from refused


def _reason(error: LayoutAdviseError) -> str:
    """The error without what to do."""
    return f"{error.what}: {error.why}" if error.why else error.what


def relevant(trace: Trace, region: Region) -> Trace:
    """Without the accesses of code that is not lifted and that touches nothing that the lifted code touches: the linkage
    table, tables of the mathematical library. What does touch the same memory stays, and stands in the way of a change."""
    code = functions_of(region)
    own = [any(function.contains(r.pc) for function in code) for r in trace.references]
    if all(own):
        return trace
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
