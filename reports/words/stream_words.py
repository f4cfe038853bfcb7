"""Folded streams as readable text: ``for 1300000 step 80 from 0x7ffff0000000``.

``i``, ``j``, ``k``, ... are the indices of the enclosing loops, outermost first, from 0. A loop around a single access tells
its trip count and by how many bytes the address moves; a loop around several has braces, and their addresses name its index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, Node, Point, Stream
from layout_advise.reports.model.source import StrideKind

NAMES = "ijklmnopqrstuvwxyz"
PART = 24
"""Parts of one body that are written; more are counted."""


def stream_text(stream: Stream | None, limit: int | None = None) -> str:
    """The stream in one line, cut to about ``limit`` characters."""
    if stream is None:
        return "never executed"
    if isinstance(stream, AddressSet):
        return set_text(stream)
    return cut(body_text(stream.nodes), limit) or "no access"


def set_text(found: AddressSet) -> str:
    """A set of addresses without order."""
    if found.count == 0:
        return "no access"
    if found.gcd == 0:
        return f"{found.count} times {found.minimum:#x}"
    inexact = "" if found.exact else " (inexact: only the bounds and the gcd are known)"
    return f"random in {found.minimum:#x} .. {found.maximum:#x}, multiples of {found.gcd}{inexact}"


def body_text(nodes: Sequence[Node], depth: int = 0) -> str:
    """Several nodes, joined by ``;``."""
    parts = [node_text(node, depth) for node in nodes[:PART]]
    if len(nodes) > PART:
        parts.append(f"{len(nodes) - PART} more parts")
    return "; ".join(parts)


def node_text(node: Node, depth: int = 0) -> str:
    """One loop or access inside ``depth`` loops that are written already (by braces)."""
    loops: list[Affine] = []
    inner: Node = node
    while not isinstance(inner, Point) and len(inner.body) == 1:
        loops.append(inner.trip)
        inner = inner.body[0]
    if isinstance(inner, Point):
        steps = [_step(inner.address, depth + place) for place in range(len(loops))]
        text = [f"for {affine_text(trip)} step {step}" for trip, step in zip(loops, steps, strict=True)]
        outer = Affine(inner.address.const, inner.address.coefs[:depth])
        return " ".join([*text, "from" if text else "at", affine_text(outer, address=True)])
    text = [f"for {affine_text(trip)}" for trip in (*loops, inner.trip)]
    names = [f" ({_name(depth + place)})" for place in range(len(text))]
    heads = " ".join(one + name for one, name in zip(text, names, strict=True))
    return f"{heads} {{ {body_text(inner.body, depth + len(text))} }}"


def stride_of(stream: Stream, size: int) -> tuple[StrideKind, int | None]:
    """How the address moves from one access of ``size`` bytes to the next in the innermost loop that has several, and by how
    many bytes where that is constant. Of parts that differ it is irregular."""
    if isinstance(stream, AddressSet):
        return ("broadcast" if stream.gcd == 0 and stream.count > 1 else "once" if stream.count == 1 else "irregular"), None
    steps = set(_steps(stream.nodes, None, 0))
    if not steps or steps == {None}:
        return "once", None
    steps.discard(None)
    if len(steps) > 1:
        return "irregular", None
    (step,) = steps
    if not step:
        return "broadcast", 0
    return ("unit" if abs(step) == size else "constant"), step


def _steps(nodes: Sequence[Node], loop: int | None, depth: int) -> Iterator[int | None]:
    """Of every point the coefficient of the innermost loop around it that is no single iteration; None outside of loops."""
    for node in nodes:
        if isinstance(node, Point):
            yield None if loop is None else _step(node.address, loop)
        else:
            several = node.trip.const > 1 or any(node.trip.coefs)
            yield from _steps(node.body, depth if several else loop, depth + 1)


def stride_words(kind: StrideKind, stride: int | None) -> str:
    """``unit stride``, ``constant stride of 80 B``, ``same address (broadcast)``, ``irregular``, ``once``."""
    if kind == "constant" and stride is not None:
        return f"constant stride of {stride} B"
    if kind == "unit":
        return "unit stride, backwards" if (stride or 0) < 0 else "unit stride"
    return "same address (broadcast)" if kind == "broadcast" else kind


def cut(text: str, limit: int | None) -> str:
    """``text`` cut to ``limit`` characters, an ellipsis at its end."""
    return text if limit is None or len(text) <= limit else text[: max(1, limit - 1)].rstrip() + "…"


def _step(address: Affine, depth: int) -> int:
    return address.coefs[depth] if depth < len(address.coefs) else 0


def _name(depth: int) -> str:
    return NAMES[depth] if depth < len(NAMES) else f"i{depth}"


def affine_text(value: Affine, address: bool = False) -> str:
    """``12 + 3i - j``."""
    terms = [(coef, _name(depth)) for depth, coef in enumerate(value.coefs) if coef]
    text = f"{value.const:#x}" if address else str(value.const) if value.const or not terms else ""
    for coef, name in terms:
        factor = "" if abs(coef) == 1 else str(abs(coef))
        if not text:
            text = f"{'-' if coef < 0 else ''}{factor}{name}"
        else:
            text += f" {'-' if coef < 0 else '+'} {factor}{name}"
    return text
