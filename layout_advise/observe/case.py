"""The region and the call that are studied: the program started again, stopped at a call, and observed there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from layout_advise.choose.batches import CallBatch
from layout_advise.choose.call_kinds import Kind
from layout_advise.choose.calls import ChosenCall
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings
from layout_advise.errors import SnapshotError, TraceError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.layoutalgebra.sets.spans import spans
from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.machine.call_abi import INTEGERS
from layout_advise.mockup.machine.call_arguments import read_first
from layout_advise.mockup.machine.entry_values import Known
from layout_advise.observe.backends import Tracer
from layout_advise.observe.observe import Observation, merge, observed
from layout_advise.observe.policy import OBSERVE
from layout_advise.tracer.backends.clone.address import choose_address
from layout_advise.tracer.backends.clone.image import build_clone
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.code.calls_out import calls_out
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.probe import Probe
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.between import Puts, settle
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.snapshot.recorded_calls import RSP, STACK_BYTES, Calls
from layout_advise.tracer.snapshot.snapshots import whole_copies
from layout_advise.tracer.trace.trace import Trace
from layout_advise.workspace import Workspace

_ARGUMENTS = tuple(place.number for place in INTEGERS if isinstance(place, Gpr))


@dataclass(frozen=True, slots=True)
class Case:
    """The hotspot, the calls counted and timed, and the call chosen: what choosing has found."""

    settings: Settings
    main: ElfBinary
    profiled: Profiled
    probe: Probe
    chosen: ChosenCall
    stdin: Path | None
    space: Workspace
    batch: CallBatch | None = None
    """Short calls are traced, compared and timed as batches."""
    no_batch: str = ""
    """Why there is no batch although the calls are short."""
    no_loop: str = ""
    """Why there is no loop instead of a hotspot that is entered too seldom."""
    taken: frozenset[int] = frozenset()
    """Where ways begin that calls compared before took, though the first did not."""
    called: frozenset[int] = frozenset()
    """Functions of the region's file, by their addresses there, that it was seen to call through pointers."""
    kinds: tuple[Kind, ...] = ()
    """Where calls differ: that of the call stopped at, then the others."""
    beside: tuple[Observation, ...] = ()
    """Calls of other regions that use some of its structures: these have the fields of all."""
    given: tuple[Candidate, ...] = ()
    """Layouts to measure in every region of the run that uses their structures; their ids are the same everywhere."""
    further_ids: int = 1
    """Layouts proposed for this region alone have ids from this number on."""
    seconds: float | None = None
    """So long it has for measuring and for trials in the running program, together; None: as the settings say."""
    until: float = math.inf
    """The end of the run (``own_time``): nothing is measured beyond its own seconds that would go on after it."""

    @property
    def calls_compared(self) -> tuple[int, ...]:
        """The calls at which the program is stopped to compare: of the first, the structures are known."""
        if self.batch is not None:
            return self.batch.firsts
        if self.chosen.alike:
            return tuple(call for call in self.chosen.alike if call >= self.chosen.call)[: CHOOSE.verified_calls]
        if self.kinds:
            later = [call for call in self.kinds[0].members if call >= self.chosen.call]
            return tuple(later[: CHOOSE.verified_calls])
        return tuple(range(self.chosen.call, min(self.chosen.call + CHOOSE.verified_calls, self.probe.calls + 1)))

    @property
    def may_have_loops(self) -> bool:
        """Tells whether a loop in it may be studied in its place: in a function whose calls are long enough to be timed one
        by one. What is new in a batch, the program may have allocated between its calls."""
        return self.profiled.nest is None and self.batch is None

    @property
    def timed_calls(self) -> int:
        """How many calls are timed together."""
        return self.batch.size if self.batch is not None else 1

    @property
    def counting(self) -> float:
        """The part of the time of a chunk of a loop that counting its iterations may take; 0 of all else."""
        ns = self.chosen.in_situ_ns
        return min(1.0, self.probe.counting_ns / ns) if ns else 0.0

    def per_call(self, ns: float | None) -> float | None:
        """The time of one call, from that of what is timed."""
        return None if ns is None else ns / self.timed_calls

    @property
    def outs(self) -> tuple[Gpr | Lane, ...]:
        """The registers that a loop leaves behind; a function's are known from its result."""
        return self.profiled.nest.outs if self.profiled.nest is not None else ()

    @property
    def known(self) -> Known:
        """The vector registers as the code before a loop leaves them, where known."""
        return self.profiled.nest.known if self.profiled.nest is not None else ()

    def unbatched(self, why: str) -> Case:
        """The same case without its batch, with the time of one call."""
        chosen = replace(self.chosen, in_situ_ns=self.batch.spread[1]) if self.batch is not None else self.chosen
        return replace(self, batch=None, no_batch=why, chosen=chosen)

    def with_fewer_calls(self, why: str) -> Case:
        """The same case with a shorter batch, or, because of ``why``, without one where that would be too short."""
        shorter = self.batch.shortened() if self.batch is not None else None
        if shorter is None:
            return self.unbatched(f"its calls one after the other {why}")
        chosen = replace(self.chosen, in_situ_ns=sum(shorter.each_ns))
        return replace(self, batch=shorter, chosen=chosen)

    def alone(self, why: str) -> Case:
        """The same case without what the program writes between the calls of the batch, because of ``why``."""
        assert self.batch is not None
        return replace(self, batch=replace(self.batch, calls=replace(self.batch.calls, between=None), unknown=why))

    @property
    def clock(self) -> Literal["thread-cpu", "wall"]:
        """The clock for calls: several threads have no CPU time in common."""
        return "wall" if self.profiled.threaded else "thread-cpu"

    def park(self, call: int) -> AgentProcess:
        """Start the program again and stop it at ``call``."""
        program = park(
            self.settings.command,
            self.profiled.entry,
            call,
            stdin_path=self.stdin,
            timeout=self.settings.timeout,
            command_timeout=answer_seconds(self.chosen.in_situ_ns),
        )
        if self.profiled.threaded:
            try:
                whole_copies(program, self.settings.snapshot != "fork", self.space.scratch)
            except BaseException:
                program.close()
                raise
        return program

    def observe(self, program: AgentProcess, call: int) -> Observation:
        """Trace the call at which ``program`` is stopped; from then on a call of it is the batch that begins there."""
        region = self._region(program.load_base)
        if self.batch is not None:
            calls = self.batch.at(call)
            if not calls.starts_like(program.registers(), (RSP, *arguments_of(region))):
                raise SnapshotError("the recorded calls are not those of the stopped program", "it differs from run to run")
            program.batch(calls, calls.varying_stack)
            puts = settled(program, calls)
            if puts is not None:
                puts.install(program)
            trace = self._tracer.clone(program, call, len(calls))
            program.batch(calls, words_read(trace, calls.varying_stack))
            seen = replace(observed(program, self.main, region, trace), varying=calls.varying - {RSP})
            return seen if puts is None else with_puts(seen, puts, program)
        if self.profiled.nest is not None:
            return observed(program, self.main, region, self._tracer.clone(program, call))
        return observed(program, self.main, region, self._tracer.trace(program, call))

    def traced(self, call: int) -> Trace:
        """The trace of ``call``, by the clone, in a process started anew."""
        with self.park(call) as program:
            region = self._region(program.load_base)
            return trace_call(program, region, call, self._tracer.records, folder=self.space.scratch)

    def clone_refusal(self, program: AgentProcess) -> str | None:
        """Why the clone cannot trace the hotspot, or None."""
        region = self._region(program.load_base)
        try:
            build_clone(region, choose_address(program.mappings(), region.entry))
        except TraceError as error:
            return error.line()
        return None

    @property
    def _tracer(self) -> Tracer:
        return Tracer(
            self.settings, self.profiled.entry, self._region, self.stdin, self.space.scratch, self.space.progress.note
        )

    def _region(self, load_base: int) -> Region:
        return self.profiled.region(load_base, sorted(self.called))


def settled(program: AgentProcess, calls: Calls) -> Puts | None:
    """The program's writes between ``calls``, which are the batch of ``program``; None where it is not known."""
    if calls.between is None:
        return None
    top = program.registers().gpr[RSP] + 8
    own = () if calls.from_one_depth else (Range(top, top + STACK_BYTES),)
    return settle(program, calls.between, own, OBSERVE.most_puts)


def with_puts(seen: Observation, puts: Puts, program: AgentProcess) -> Observation:
    """``seen`` with ``puts`` between its calls, which ``program`` makes from now on: what none of them touches is no
    matter, where it is known what that is; else where the calls leave the same without."""
    fewer = puts.within(seen.touched)
    if not calls_out(seen.region, seen.trace.untaken) or are_enough(fewer, puts, seen.touched, program):
        puts = fewer
    if len(puts):
        puts.install(program)
    return replace(seen, written=merge((*seen.written, *puts.lines)), put=puts.lines, puts=len(puts))


def are_enough(fewer: Puts, puts: Puts, touched: Sequence[Range], program: AgentProcess) -> bool:
    """Tells whether the calls of the batch leave the same in ``touched``, and return the same, with ``fewer`` of the
    ``puts`` between them. A program that computes elsewhere between short calls writes much that is nothing to these."""
    if len(fewer) == len(puts) or sum(r.end - r.start for r in touched) > OBSERVE.most_compared:
        return False

    def left(some: Puts) -> tuple[object, ...]:
        with program.fork() as fork:
            if len(some):
                some.install(fork)
            returned = fork.run(0).returned
            return returned, *(fork.read(r.start, r.end - r.start) for r in touched)

    try:
        return left(fewer) == left(puts)
    except SnapshotError:
        return False


def answer_seconds(call_ns: float | None) -> float:
    """How long a command to the stopped program may take, of which one call takes ``call_ns`` (None: not known)."""
    wanted = math.inf if call_ns is None else OBSERVE.answer_calls * call_ns / 1e9
    return min(OBSERVE.most_answer, max(OBSERVE.least_answer, wanted))


def arguments_of(region: Region) -> tuple[int, ...]:
    """The numbers of the general registers of arguments that the code may read: in the others stands what its callers
    happened to leave there, such as a time of day."""
    known = read_first(region)
    return tuple(number for number in _ARGUMENTS if known is None or Gpr(number) in known)


def words_read(trace: Trace, words: Sequence[int]) -> tuple[int, ...]:
    """Those of ``words`` (distances from the stack pointer at the entry) that the traced calls read; all where the trace is
    not whole."""
    if trace.truncated:
        return tuple(words)
    top = trace.registers.gpr[RSP]
    read = [
        (span.low - top, span.high + reference.bytes - top)
        for reference, stream in zip(trace.references, trace.streams, strict=True)
        if stream is not None and reference.kind != "write"
        for span in spans(stream)
    ]
    return tuple(word for word in words if any(low < word + 8 and word < high for low, high in read))


def outside_arguments(ranges: Sequence[Range], top: int) -> tuple[Range, ...]:
    """``ranges`` without the words above the return address at ``top``, which are put there before each call of a batch."""
    low, high = top + 8, top + 8 + STACK_BYTES
    parts = [part for r in ranges for part in (Range(r.start, min(r.end, low)), Range(max(r.start, high), r.end))]
    return tuple(part for part in parts if part.start < part.end)
