"""What has to hold within a trace that a file holds, besides the types of its values: its parts refer to each other by
number, and whoever reads it follows these numbers without asking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layout_advise.layoutalgebra.sets.nests import AddressSet, Loop, Node, Point, Stream
from layout_advise.tracer.trace.trace import Control, Trace

_WORD = 1 << 64


def check(trace: Trace) -> None:
    """Raises ValueError, with what is wrong, where the parts of a trace do not fit together."""
    for fault in _faults(trace):
        raise ValueError(fault)


def _faults(trace: Trace) -> Iterator[str]:
    if len(trace.references) != len(trace.streams):
        yield f"{len(trace.references)} references have {len(trace.streams)} streams"
    if any(not 0 <= r.pc < _WORD or not 0 < r.bytes < _WORD for r in trace.references):
        yield "a reference has no address or no size"
    if any(not _plausible(stream) for stream in trace.streams if stream is not None):
        yield "a stream is of no possible addresses"
    blocks = (*trace.allocations, *trace.born)
    if any(not 0 <= block.address < _WORD or not 0 <= block.bytes < _WORD for block in blocks):
        yield "a heap block has no address or no size"
    if any(not 0 <= m.start <= m.end <= _WORD for m in trace.mappings):
        yield "a mapping has no address or no size"
    yield from _loop_faults(trace)
    for control in (trace.control, *trace.team_control):
        if control is not None:
            yield from _order_faults(control)


def _plausible(stream: Stream) -> bool:
    if stream.count < 0:
        return False
    if not isinstance(stream, AddressSet):
        return True
    if not 0 <= stream.minimum <= stream.maximum < 2 * _WORD or stream.gcd < 0:
        return False
    places = (stream.maximum - stream.minimum) // stream.gcd + 1 if stream.gcd else 1
    return (stream.bitmap is None or len(stream.bitmap) * 8 >= places) and all(map(_plausible, stream.clusters))


def _loop_faults(trace: Trace) -> Iterator[str]:
    known = range(len(trace.loops))
    for number, loop in enumerate(trace.loops):
        around, steps = loop.parent, 0
        while around is not None and around in known and steps <= len(known):
            around, steps = trace.loops[around].parent, steps + 1
        if around is not None:
            yield f"loop {number} lies in no loop that there is"
    used = [place.loop for place in trace.places]
    used += [use.loop for one in trace.objects for field in one.fields for use in field.uses]
    if any(number is not None and number not in known for number in used):
        yield "a loop is used that there is not"


def _order_faults(control: Control) -> Iterator[str]:
    if any(not 0 <= first <= last for first, last in control.pieces):
        yield "a piece of the code has no references"
    if any(number not in range(len(control.pieces)) for number in _pieces(control.nodes or ())):
        yield "a piece of the code ran that there is not"


def _pieces(nodes: Sequence[Node]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, Point):
            yield node.address.const
        elif isinstance(node, Loop):
            yield from _pieces(node.body)
