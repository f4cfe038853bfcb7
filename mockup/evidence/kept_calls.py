"""The calls of a lifted region that stay calls, and its ways that no compared call took."""

from __future__ import annotations

from collections.abc import Iterable

from layout_advise.mockup.ir.lifted import ANOTHER_CALLEE, Lifted, OpaqueCall, WayEnd, everything
from layout_advise.tracer.trace.trace import Trace


def kept_calls(lifted: Lifted) -> tuple[OpaqueCall, ...]:
    """The calls of functions that are not lifted, each instruction once."""
    found = {item.origin.pc: item for item in everything(lifted.body) if isinstance(item, OpaqueCall)}
    return tuple(call for call in found.values() if not (call.function or "").startswith("rep "))


def strings_of(lifted: Lifted) -> frozenset[int]:
    """The addresses of its ``rep`` operations that stay instructions."""
    calls = (item for item in everything(lifted.body) if isinstance(item, OpaqueCall))
    return frozenset(call.origin.pc for call in calls if (call.function or "").startswith("rep "))


def ended_ways(lifted: Lifted) -> tuple[WayEnd, ...]:
    """The ways that no compared call took, on which mock-ups end; each once."""
    return tuple({item.pc: item for item in everything(lifted.body) if isinstance(item, WayEnd) and item.reason}.values())


def never_taken(trace: Trace, others: Iterable[Trace], taken: frozenset[int]) -> frozenset[int]:
    """Where code begins that neither the traced call nor ``others`` have run, nor what is ``taken`` at further calls."""
    return frozenset(trace.untaken).intersection(*(other.untaken for other in others)) - taken


def what_is_called(trace: Trace, others: Iterable[Trace], taken: frozenset[int]) -> dict[int, tuple[int, ...]]:
    """The functions that indirect calls, by their addresses, came to in any of the traced calls; those of which it is not
    known are left out, and those that are ``taken`` to others at further calls."""
    found: dict[int, set[int]] = {}
    unknown = set(taken)
    for one in (trace, *others):
        for at, targets in one.called:
            found.setdefault(at, set()).update(targets)
            unknown |= set() if targets else {at}
    return {at: tuple(sorted(targets)) for at, targets in found.items() if at not in unknown}


def taken_after_all(lifted: Lifted, first: Trace, trace: Trace) -> frozenset[int]:
    """Where code begins that the traced call has run and the ``first`` one has not, if it took ways that end the mock-ups:
    all of it, as what is behind the end of a way has ends of its own; of indirect calls those that called others. Else
    none."""
    ends, known = ended_ways(lifted), dict(first.called)
    sites = frozenset(stop.pc for stop in ends if stop.reason == ANOTHER_CALLEE)
    took = frozenset(stop.pc for stop in ends) - sites - frozenset(trace.untaken)
    took |= {at for at, now in trace.called if at in sites and (not now or set(now) - set(known.get(at, now)))}
    return took | (frozenset(first.untaken) - frozenset(trace.untaken)) if took else took
