"""Kinds of calls: which calls of a hotspot do the same work, how many there are of each, and which part of its time.

Calls are of one kind where they make nearly the same accesses and use the same bytes of the structures' elements. That is
taken from traces, which do not depend on the machine's load. Times alone make no kind, since noise makes differences in time
too: they tell which further calls are worth a trace, and how much a kind weighs. Memory is not looked at by its address:
calls that swap two buffers, or go through an array piece by piece, are of one kind.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from layout_advise.choose.policy import CHOOSE
from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.sets.nests import AddressSet
from layout_advise.layoutalgebra.sets.spans import AddressSpan, spans
from layout_advise.mockup.timing.statistics import median_of
from layout_advise.tracer.trace.trace import Trace

Site = tuple[int, int]
Place = tuple[int, int]

MOST_PLACES = 64


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a call: ``counts`` accesses by (pc, operand); ``uses``, by structure, how many accesses go to which
    (offset in the element, bytes)."""

    counts: Mapping[Site, int]
    uses: Mapping[str, Mapping[Place, int]]

    @property
    def total(self) -> int:
        """All accesses."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Kind:
    """``calls`` of this kind there are in the run, as far as the calls looked at tell, with ``share`` of the hotspot's time;
    ``call`` stands for them. ``members`` are those of the calls looked at, ``text`` names them: ``odd calls``."""

    calls: int
    share: float
    call: int
    members: tuple[int, ...]
    text: str
    ns: float | None = None
    """Median over the members of their undisturbed times in the running program."""
    spread: float = 0.0
    """Half the range of these, divided by ``ns``."""


def work_of(trace: Trace, structures: Sequence[Structure]) -> Work:
    """The work of the traced call; of memory outside ``structures`` only the counts."""
    counts: Counter[Site] = Counter()
    uses: dict[str, Counter[Place]] = {}
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if stream is None or not stream.count:
            continue
        counts[reference.pc, reference.operand] += stream.count
        for span in spans(stream):
            structure = next((s for s in structures if _within(span, s)), None)
            if structure is None:
                continue
            offsets = list(_offsets(span, structure))
            each = max(1, (span.count or stream.count) // len(offsets))
            places = uses.setdefault(structure.id, Counter())
            for offset in offsets:
                places[offset, reference.bytes] += each
    return Work(dict(counts), {name: dict(places) for name, places in uses.items()})


def _within(span: AddressSpan, structure: Structure) -> bool:
    start = structure.block_base or structure.base
    return start <= span.low and span.high < start + structure.bytes


def _offsets(span: AddressSpan, structure: Structure) -> Iterator[int]:
    """The offsets in an element at which the span's accesses begin; all places that the strides allow."""
    element = structure.element_bytes
    source = span.source
    strides = (source.gcd,) if isinstance(source, AddressSet) else source.address.coefs
    step = math.gcd(element, *strides)
    first = (span.low - structure.base) % element
    if element // step > MOST_PLACES:
        step = max(1, element // MOST_PLACES)
    for k in range(element // step):
        yield (first + k * step) % element


def alike(one: Work, other: Work) -> bool:
    """Tells whether two calls are of one kind."""
    total = max(one.total, other.total)
    if total == 0:
        return True
    sites = one.counts.keys() | other.counts.keys()
    apart = sum(abs(one.counts.get(s, 0) - other.counts.get(s, 0)) for s in sites)
    if apart > CHOOSE.other_counts * total:
        return False
    return max(_foreign(one, other), _foreign(other, one)) <= CHOOSE.other_bytes


def _foreign(one: Work, other: Work) -> float:
    """The part of the accesses of ``one`` that goes to bytes of elements that ``other`` leaves alone; of structures that
    both use."""
    count = 0
    for name, places in one.uses.items():
        if name not in other.uses:
            continue
        known = {byte for offset, size in other.uses[name] for byte in range(offset, offset + size)}
        count += sum(n for (offset, size), n in places.items() if known.isdisjoint(range(offset, offset + size)))
    return count / max(one.total, 1)


def grouped(works: Mapping[int, Work]) -> list[list[int]]:
    """The calls by kind, each compared with the first of its kind; kinds in the order of their first calls."""
    groups: list[list[int]] = []
    for call in sorted(works):
        home = next((g for g in groups if alike(works[g[0]], works[call])), None)
        if home is None:
            groups.append([call])
        else:
            home.append(call)
    return groups


def unlike_in_time(times: Sequence[float], known: Collection[int], most: int = CHOOSE.most_kinds) -> tuple[int, ...]:
    """Calls (from 1) that are worth a look: one of each group of times with a share worth a study that has none of the
    ``known`` calls; the first call, which finds cold memory, only where there is no other."""
    if len(times) < 2:
        return ()
    order = sorted(range(2, len(times) + 1), key=lambda call: times[call - 1])
    groups: list[list[int]] = []
    for call in order:
        if groups and times[call - 1] <= CHOOSE.other_time * max(times[groups[-1][-1] - 1], 1.0):
            groups[-1].append(call)
        else:
            groups.append([call])
    total = sum(times[1:])
    heavy = [(sum(times[c - 1] for c in g), g) for g in groups if not set(g) & set(known)]
    heavy = sorted((h for h in heavy if h[0] >= CHOOSE.least_kind_share * total), reverse=True)
    return tuple(g[len(g) // 2] for _, g in heavy[:most])


def period_of(labels: Mapping[int, int]) -> int | None:
    """The least period that all known ``labels`` (kind by call) fit and that a run of consecutive ones shows at least
    twice; None where there is none."""
    if not labels:
        return None
    longest = max((_run(labels, call) for call in labels), default=0)
    for period in range(1, longest // 2 + 1):
        seen: dict[int, int] = {}
        if all(seen.setdefault(call % period, kind) == kind for call, kind in labels.items()):
            return period
    return None


def _run(labels: Mapping[int, int], call: int) -> int:
    length = 0
    while call + length in labels:
        length += 1
    return length


def label_calls(labels: Mapping[int, int], times: Sequence[float]) -> Mapping[int, int]:
    """The kind of every call of which there is a time: by the period of those known exactly, else by the time, where the
    kinds' times are clearly apart. Where neither tells, the calls known stand for all."""
    calls = range(1, len(times) + 1)
    period = period_of(labels)
    if period is not None:
        by_place = {call % period: kind for call, kind in labels.items()}
        return {call: by_place[call % period] for call in calls}
    kinds = sorted(set(labels.values()))
    known = {k: [times[c - 1] for c, kind in labels.items() if kind == k and 1 <= c <= len(times)] for k in kinds}
    if all(known.values()):
        middle = {k: max(median_of(v), 1.0) for k, v in known.items()}
        steps = sorted(middle.values())
        if all(b > CHOOSE.other_time * a for a, b in pairwise(steps)):
            near = {c: min(kinds, key=lambda k: abs(math.log(max(times[c - 1], 1.0) / middle[k]))) for c in calls}
            return {**near, **{c: k for c, k in labels.items() if c in near}}
    return {call: kind for call, kind in labels.items() if call <= len(times)}


def weigh(
    labels: Mapping[int, int], times: Sequence[float], calls: int, period: int | None = None
) -> dict[int, tuple[int, float]]:
    """By kind: how many of all ``calls`` are of it, and its part of the hotspot's time. With a ``period`` the calls are
    counted, else taken to be as frequent as among those labelled. The first call has no say where there are others: what it
    takes longer is not its kind's."""
    counted = {c: k for c, k in labels.items() if c > 1} if len(labels) > CHOOSE.most_kinds else dict(labels)
    by_kind: dict[int, list[float]] = {}
    for call, kind in counted.items():
        by_kind.setdefault(kind, []).append(times[call - 1])
    number = {k: round(calls * len(each) / len(counted)) for k, each in by_kind.items()}
    if period is not None:
        by_place = {call % period: kind for call, kind in labels.items()}
        full, rest = divmod(calls, period)
        number = dict.fromkeys(by_kind, 0)
        for place in range(1, period + 1):
            number[by_place[place % period]] += full + (place <= rest)
    spent = {k: number[k] * math.fsum(each) / len(each) for k, each in by_kind.items()}
    total = math.fsum(spent.values())
    return {k: (number[k], spent[k] / total if total else 0.0) for k in by_kind}


def named(members: Sequence[int], period: int | None, call: int) -> str:
    """``odd calls``, ``calls 3 and 7 of every 10``, ``calls like call 7``."""
    if period is None:
        return f"calls like call {call}"
    places = sorted({(member - 1) % period + 1 for member in members})
    if period == 2 and len(places) == 1:
        return "odd calls" if places == [1] else "even calls"
    if len(places) > 3:
        return f"{len(places)} of every {period} calls, like call {call}"
    listed = " and ".join(map(str, places))
    return f"call{'s' if len(places) > 1 else ''} {listed} of every {period}"
