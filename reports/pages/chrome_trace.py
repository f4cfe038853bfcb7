"""A run as Chrome trace events, for chrome://tracing and ui.perfetto.dev.

The format is Google's "Trace Event Format": a JSON object with ``traceEvents``. Complete events (``ph`` X) have ``ts`` and
``dur`` in microseconds and nest by time within one ``pid`` and ``tid``; metadata events (``ph`` M) name the tracks. Process
1 holds the stages of the run in wall time. Process 2 holds the traced call, where a microsecond stands for one access: what
was recorded is the order and the number of accesses, not their time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from layout_advise.layoutalgebra.sets.nests import Loop, Node, Point
from layout_advise.reports.pages.trace_text import call_word, calls_text, loop_place, piece_names
from layout_advise.tracer.trace.trace import Control, Trace

MOST_EVENTS = 20_000
"""Events of the traced call that are written; beyond, iterations are drawn together."""

EACH = 64
"""Iterations of one loop that are drawn one by one; of loops with more, all are drawn together."""

RUN, CALL = 1, 2


def events(trace: Trace, stages: Sequence[tuple[str, float, float]] = ()) -> dict[str, Any]:
    """The whole file as an object for ``json.dumps``; ``stages`` are (name, start, seconds)."""
    found = [*_stages(stages), *_call(trace)]
    return {
        "traceEvents": found,
        "displayTimeUnit": "ms",
        "otherData": {"tool": "layout-advise", "call": f"1 us in process 2 is one access of the traced {call_word(trace)}"},
    }


def _stages(stages: Sequence[tuple[str, float, float]]) -> Iterator[dict[str, Any]]:
    if not stages:
        return
    yield _named("process_name", RUN, 0, "layout-advise (wall time)")
    yield _named("thread_name", RUN, 1, "stages")
    starts = [int(start * 1e6) for _, start, _ in stages]
    for (name, _, seconds), first, limit in zip(stages, starts, [*starts[1:], None], strict=True):
        last = first + int(seconds * 1e6)
        yield _complete(name, "stage", RUN, 1, first, (last if limit is None else min(last, limit)) - first)


def _call(trace: Trace) -> Iterator[dict[str, Any]]:
    yield _named("process_name", CALL, 0, f"{trace.symbol}, {calls_text(trace)} (1 us is 1 access)")
    yield from _tracks(trace)
    controls = {0: trace.control} if trace.control is not None else {}
    controls |= {t.number: c for t, c in zip(trace.threads, trace.team_control, strict=False)}
    for thread, control in controls.items():
        if control.nodes is not None:
            drawing = _Drawing(trace, control, thread + 1, MOST_EVENTS // len(controls))
            yield from drawing.run(control.nodes, 0)


def _tracks(trace: Trace) -> Iterator[dict[str, Any]]:
    """A track for every thread, with one event as long as the thread's accesses."""
    counts: dict[int, int] = {}
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        thread = getattr(reference, "thread", 0)  # parallel regions have one set of references a thread
        counts[thread] = counts.get(thread, 0) + (stream.count if stream is not None else 0)
    for thread, count in sorted(counts.items()):
        yield _named("thread_name", CALL, thread + 1, f"thread {thread}")
        facts = {"accesses": count, "backend": trace.backend, "truncated": trace.truncated}
        yield _complete(trace.symbol, "call", CALL, thread + 1, 0, count, facts)


class _Drawing:
    """The folded order of execution as nested events on one track, ``most`` at most."""

    def __init__(self, trace: Trace, control: Control, track: int, most: int) -> None:
        self.track = track
        self.trace = trace
        self.names = piece_names(trace, control)
        self.sizes = [last - first + 1 for first, last in control.pieces]
        loop_at = {place.pc: place.loop for place in trace.places}
        known = range(len(trace.references))  # a file that was cut has fewer
        self.loops = [loop_at.get(trace.references[first].pc) if first in known else None for first, _ in control.pieces]
        self.left = most

    def run(self, nodes: Sequence[Node], start: int, indices: tuple[int, ...] = ()) -> Iterator[dict[str, Any]]:
        """The events of ``nodes`` one after the other, the first at access ``start``."""
        for node in nodes:
            size = self.size((node,), indices)
            if size and self.left > 0:
                self.left -= 1
                yield from self.one(node, start, size, indices)
            start += size

    def one(self, node: Node, start: int, size: int, indices: tuple[int, ...]) -> Iterator[dict[str, Any]]:
        if isinstance(node, Point):
            yield _complete(self.names[node.address.const], "code", CALL, self.track, start, size)
            return
        trip = node.trip.at(indices)
        number = self._loop(node)
        place = f" {loop_place(self.trace.loops[number])}" if number is not None else ""
        facts: Mapping[str, Any] = {"iterations": trip, "accesses": size}
        yield _complete(f"loop{place} × {trip}", "loop", CALL, self.track, start, size, facts)
        if trip > EACH:
            yield from self.together(node, start, trip, indices)
            return
        for index in range(trip):
            inside = (*indices, index)
            yield from self.run(node.body, start, inside)
            start += self.size(node.body, inside)

    def together(self, node: Loop, start: int, trip: int, indices: tuple[int, ...]) -> Iterator[dict[str, Any]]:
        """The first iteration, and the others as one event."""
        first = (*indices, 0)
        yield from self.run(node.body, start, first)
        size = self.size(node.body, first)
        rest = self.size((node,), indices) - size
        if rest and self.left > 0:
            self.left -= 1
            yield _complete(f"{trip - 1} more iterations", "loop", CALL, self.track, start + size, rest)

    def size(self, nodes: Sequence[Node], indices: tuple[int, ...]) -> int:
        """Accesses of ``nodes`` at the given indices of the loops around."""
        total = 0
        for node in nodes:
            if isinstance(node, Point):
                total += self.sizes[node.address.const]
                continue
            trip = max(node.trip.at(indices), 0)
            if _constant(node.body, len(indices)):
                total += trip * self.size(node.body, (*indices, 0))
            else:
                total += sum(self.size(node.body, (*indices, index)) for index in range(trip))
        return total

    def _loop(self, node: Loop) -> int | None:
        """The loop of the code that ``node`` is: the outermost one that all its pieces share, if they share one."""
        chains = [self._chain(self.loops[piece]) for piece in _pieces(node.body)]
        shared = [n for n in chains[0] if all(n in chain for chain in chains)] if chains else []
        return shared[0] if shared else None

    def _chain(self, number: int | None) -> list[int]:
        """A loop and those around it, from the inside out."""
        found = []
        while number is not None:
            found.append(number)
            number = self.trace.loops[number].parent
        return found


def _pieces(nodes: Sequence[Node]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, Point):
            yield node.address.const
        else:
            yield from _pieces(node.body)


def _constant(nodes: Sequence[Node], depth: int) -> bool:
    """True where no trip count within depends on the index of the loop at ``depth``."""
    return all(
        isinstance(node, Point)
        or (not (depth < len(node.trip.coefs) and node.trip.coefs[depth]) and _constant(node.body, depth))
        for node in nodes
    )


def _named(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": {"name": name}}


def _complete(
    name: str, category: str, pid: int, tid: int, start: int, duration: int, facts: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "ts": start,
        "dur": duration,
        "pid": pid,
        "tid": tid,
        "args": dict(facts or {}),
    }
