"""The text of a trace's file besides the accesses: the structures, the loops, the order of execution."""

from __future__ import annotations

import os
from collections.abc import Sequence

from layout_advise.layoutalgebra.sets.nests import Affine, Node, Point
from layout_advise.reports.words.stream_words import NAMES, PART, affine_text, cut
from layout_advise.tracer.trace.trace import CodeLoop, Control, LoopUse, SourcePlace, Trace, TracedField, TracedObject

TERM = 100
"""Characters of a layout that are printed by default."""

LIVES = {"whole": "alive all through", "freed": "freed in", "born": "allocated in"}


def calls_text(trace: Trace) -> str:
    """``call 3``, or of a batch ``calls 3 to 62``."""
    return f"call {trace.call}" if trace.calls == 1 else f"calls {trace.call} to {trace.call + trace.calls - 1}"


def call_word(trace: Trace) -> str:
    """``call``, or of a batch ``calls``."""
    return "call" if trace.calls == 1 else "calls"


def object_lines(trace: Trace, verbose: bool = False) -> list[str]:
    """One line for every piece of memory that the call touches, most accesses first; its layout and fields below."""
    lines: list[str] = []
    for found in trace.objects:
        lines.append(f"  {found.name}: {_facts(trace, found)}")
        if found.stack:
            lines.append(f"     allocated in {stack_text(found.stack)}")
        lines.append(f"     {_touched(found)}")
        if found.layout is not None:
            term = found.layout if verbose else cut(found.layout, TERM)
            lines.append(f"     {term}, elements of {found.element_bytes} bytes")
        lines += [f"     {text}" for text in _fields(trace, found.fields)]
    return lines


def heap_line(trace: Trace) -> str | None:
    """The call's heap events as text; ``None`` where they were not watched."""
    if not trace.watched:
        return None
    ending = "s" if trace.calls == 1 else ""
    if not trace.born and not trace.freed:
        return f"the {call_word(trace)} leave{ending} the heap's blocks as they were"
    left = f"{_count(len(trace.born), 'block')} of {sum(a.bytes for a in trace.born):,} bytes"
    who, whom = ("it", "it") if trace.calls == 1 else ("they", "them")
    return (
        f"the {call_word(trace)} leave{ending} {left} behind that {who} allocated, and free{ending} "
        f"{_count(len(trace.freed), 'block')} of those before {whom}"
    )


def _facts(trace: Trace, found: TracedObject) -> str:
    what = f"{found.kind}, {found.bytes:,} bytes"
    if found.kind == "heap" and found.order is not None:
        what = f"heap block {found.order} of {found.bytes:,} bytes"
    site = f" from {found.site}" if found.site else ""
    kind = f", type {found.type}" if found.type else ""
    life = f", {LIVES[found.life]} the {call_word(trace)}" if found.life is not None else ""
    return f"{what}{site}{kind}{life}"


def stack_text(stack: Sequence[SourcePlace]) -> str:
    """``grow (a.c:12), build (a.c:20), main (a.c:31)``: who called whom, innermost first, inlined calls like others; what
    called ``main`` is left out."""
    calls: list[str] = []
    for place in stack:
        functions = [*(c.function for c in place.inlined), place.function or hex(place.pc)]
        places = [(place.file, place.line), *((c.file, c.line) for c in place.inlined)]
        for function, (file, line) in zip(functions, places, strict=True):
            calls.append(f"{function} ({os.path.basename(file)}:{line})" if file else function)
        if place.function == "main":
            break
    return ", ".join(calls)


def _touched(found: TracedObject) -> str:
    others = "those to what the call put in its place" if found.life == "freed" else "others"
    counted = f"accesses not told apart from {others}" if found.accesses is None else _count(found.accesses, "access")
    counted += " (those to what lay there earlier in the call included)" if found.life == "born" else ""
    if found.high < found.low:
        return counted
    part = (found.high - found.low + 1) / found.bytes if found.bytes else 1.0
    share = "the whole of it" if part == 1 else f"{min(part, 0.999):.1%} of it"
    return f"{counted} in {found.low:#x} .. {found.high:#x}" + (f" ({share})" if found.kind != "stack" else "")


def _fields(trace: Trace, fields: Sequence[TracedField]) -> list[str]:
    rows = [
        (f.name, f.type or "", f"at {f.offset}", f"{f.reads:,} reads", f"{f.writes:,} writes", _uses(trace, f))
        for f in fields
    ]
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(5)]
    lines = []
    for row in rows:
        left = [row[k].rjust(w) if k in (3, 4) else row[k].ljust(w) for k, w in enumerate(widths)]
        lines.append("  ".join([*left, row[5]]).rstrip())
    return lines


def _uses(trace: Trace, found: TracedField) -> str:
    """``in loop 1 (3 reads), outside loops (1 write)``; the counts only where there are several."""
    if not trace.loops:
        return ""
    names = [_where(use) for use in found.uses]
    if len(found.uses) < 2:
        return "".join(names)
    counts = [", ".join(_count(n, word) for n, word in ((u.reads, "read"), (u.writes, "write")) if n) for u in found.uses]
    return ", ".join(f"{name} ({count})" for name, count in zip(names, counts, strict=True))


def _where(use: LoopUse) -> str:
    loop = "outside loops" if use.loop is None else f"in loop {use.loop}"
    return loop if use.thread is None else f"{loop} by thread {use.thread}"


def _count(number: int, word: str) -> str:
    plural = "es" if word.endswith("s") else "s"
    return f"{number:,} {word}" + (plural if number != 1 else "")


def loop_lines(trace: Trace) -> list[str]:
    """The loops that make accesses, nested by indentation, each with its number, its place and its accesses."""
    counts = loop_accesses(trace)
    alive = {n for n, count in counts.items() if n is not None and count}
    for number in sorted(alive):
        parent = trace.loops[number].parent
        while parent is not None:
            alive.add(parent)
            parent = trace.loops[parent].parent
    lines: list[str] = []

    def write(parent: int | None, depth: int) -> None:
        for number in sorted(alive, key=lambda n: trace.loops[n].head):
            loop = trace.loops[number]
            if loop.parent == parent:
                own = counts.get(number, 0)
                lines.append(
                    f"  {'  ' * depth}loop {number}  {loop_place(loop)}" + (f"  {_count(own, 'access')}" if own else "")
                )
                write(number, depth + 1)

    write(None, 0)
    return lines


def loop_place(loop: CodeLoop) -> str:
    """The place at which the loop begins, in the source where that is known."""
    return f"{os.path.basename(loop.file)}:{loop.line}" if loop.file else loop.function or hex(loop.head)


def loop_accesses(trace: Trace) -> dict[int | None, int]:
    """Accesses whose innermost loop it is; ``None``: those outside all loops."""
    loop_at = {place.pc: place.loop for place in trace.places}
    counts: dict[int | None, int] = {}
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if stream is not None:
            number = loop_at.get(reference.pc)
            counts[number] = counts.get(number, 0) + stream.count
    return counts


def control_text(trace: Trace, limit: int | None = None) -> str | None:
    """The order in which the pieces of code ran, each by its source lines; ``None`` where it was not recorded."""
    return None if trace.control is None else _order(trace, trace.control, limit)


def team_control_texts(trace: Trace, limit: int | None = None) -> list[tuple[int, str]]:
    """The same for each thread of a team, by its number."""
    pairs = zip(trace.threads, trace.team_control, strict=False)
    return [(thread.number, _order(trace, control, limit)) for thread, control in pairs]


def team_control_lines(trace: Trace, limit: int | None = None) -> list[str]:
    """The order of execution of each thread of a team; of threads that follow each other and ran alike in one line."""
    groups: list[tuple[list[int], str]] = []
    for number, text in team_control_texts(trace, limit):
        if groups and groups[-1][1] == text:
            groups[-1][0].append(number)
        else:
            groups.append(([number], text))
    return [f"  {_threads(numbers)}: {text or 'no accesses'}" for numbers, text in groups]


def _threads(numbers: Sequence[int]) -> str:
    return f"thread {numbers[0]}" if len(numbers) == 1 else f"threads {numbers[0]} to {numbers[-1]}"


def _order(trace: Trace, control: Control, limit: int | None) -> str:
    if control.nodes is None:
        return control.reason or "unknown"
    return cut(_body(control.nodes, piece_names(trace, control), 0), limit)


def unknown_text(trace: Trace) -> str | None:
    """One line on what only other backends record; ``None`` where the trace has all of it."""
    if trace.backend == "clone" and not trace.threads:
        return None
    missing = ["the order of execution"] if trace.control is None and not trace.team_control else []
    missing += [] if trace.watched else ["which heap blocks come and go in the call"]
    how = "in parallel regions" if trace.threads else f"with backend {trace.backend}"
    return f"not known {how}: {', '.join(missing)}" if missing else None


def piece_names(trace: Trace, control: Control) -> list[str]:
    """``particles.c:16-18`` for every piece, or the function, or the address of its first instruction."""
    places = {place.pc: place for place in trace.places}
    names = []
    for first, last in control.pieces:
        pcs = [reference.pc for reference in trace.references[first : last + 1]]
        known = [places[pc] for pc in pcs if pc in places]
        files = {place.file for place in known}
        lines = [place.line for place in known if place.line]
        if len(files) == 1 and (file := next(iter(files))) and lines:
            span = str(min(lines)) if min(lines) == max(lines) else f"{min(lines)}-{max(lines)}"
            names.append(f"{os.path.basename(file)}:{span}")
        else:
            functions = {place.function for place in known}
            function = functions.pop() if len(functions) == 1 and len(known) == len(pcs) else None
            names.append(function or (f"{pcs[0]:#x}" if pcs else "?"))
    return names


def _body(nodes: Sequence[Node], names: Sequence[str], depth: int) -> str:
    parts = [_node(node, names, depth) for node in nodes[:PART]]
    return "; ".join([*parts, *([f"{len(nodes) - PART} more parts"] if len(nodes) > PART else [])])


def _node(node: Node, names: Sequence[str], depth: int) -> str:
    if isinstance(node, Point):
        return names[node.address.const]
    name = f" ({NAMES[depth]})" if depth < len(NAMES) and _mentions(node.body, depth) else ""
    return f"for {affine_text(node.trip)}{name} {{ {_body(node.body, names, depth + 1)} }}"


def _mentions(nodes: Sequence[Node], depth: int) -> bool:
    """True where a trip count within depends on the index of the loop at ``depth``."""
    for node in nodes:
        if isinstance(node, Point):
            continue
        trip: Affine = node.trip
        if (depth < len(trip.coefs) and trip.coefs[depth]) or _mentions(node.body, depth):
            return True
    return False
