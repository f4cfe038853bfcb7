"""Other users of a structure between calls of the hotspot: from the accesses seen to functions and fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout, Structure
from layout_advise.observe.policy import OBSERVE
from layout_advise.tracer.program.lines import InlinedAt, SourceLine
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.program.symbols import bare_name
from layout_advise.tracer.watch.watched import WatchedTouch

LINE = 64
_HEADERS = ("/usr/include/", "/usr/lib/")


@dataclass(frozen=True, slots=True)
class Where:
    """A function of the program, perhaps inlined into another, and the line in it; ``through`` the library's function
    or system call that it used. ``function`` is the linker symbol of the function whose code that is."""

    symbol: str
    place: SourceLine | None
    through: str | None = None
    function: str | None = None

    def text(self) -> str:
        """``report (main.c:40, by memcpy)``."""
        parts = [self.place.short() if self.place else "", f"by {self.through}" if self.through else ""]
        rest = ", ".join(part for part in parts if part)
        return f"{self.symbol} ({rest})" if rest else self.symbol


@dataclass(frozen=True, slots=True)
class User:
    """A function that was seen to touch the structure outside the hotspot; ``when``: between two calls, or after the last
    one of the program. ``reads`` and ``writes`` count the accesses that were seen one by one, which need not be all."""

    where: Where
    when: Literal["between", "after"]
    reads: int
    writes: int
    fields: tuple[str, ...]
    touched: tuple[WatchedTouch, ...]


@dataclass(frozen=True, slots=True)
class UserPlacement:
    """Over ``periods`` times between two calls, from call ``first`` on: in how many of them anything was seen to touch the
    structure, who was seen to write it last before a call and to read it first after one. ``gapless``: nothing can have
    been missed, so that no user means that there is none in these periods."""

    first: int
    periods: int
    used: int
    last_write: Where | None
    first_read: Where | None
    gapless: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one structure. ``reason``: why it is not known; ``ended``: the program was watched to its end."""

    users: tuple[User, ...] = ()
    placement: UserPlacement | None = None
    reason: str | None = None
    ended: bool = False


class CodePlaces:
    """Functions and lines of code addresses, each looked up once."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._known: dict[int, tuple[str, SourceLine | None, str | None]] = {}

    def of(self, touch: WatchedTouch) -> Where:
        """The user that made the access: the program's own function that called the library's, where that was seen."""
        symbol, line, function = self._at(touch.pc)
        if touch.caller is None:
            return Where(symbol, line, touch.system or None, function)
        caller, place, function = self._at(touch.caller - 1)  # the call stands before the address it returns to
        return Where(caller, place, touch.system or symbol, function)

    def _at(self, pc: int) -> tuple[str, SourceLine | None, str | None]:
        if pc not in self._known:
            self._known[pc] = self._look_up(pc)
        return self._known[pc]

    def _look_up(self, pc: int) -> tuple[str, SourceLine | None, str | None]:
        module = self._modules.module_at(pc)
        if module is None:
            return f"code at {pc:#x}", None, None
        binary, address = module.binary, pc - module.load_base
        function, line = binary.function_at(address), binary.line(address)
        library = PurePath(binary.path).name
        if function is None or function.anonymous:
            return library if line is None else f"{address:#x}", line, None
        name = bare_name(binary.demangled.get(function.name, function.name))
        if line is None:
            return f"{name} of {library}", None, function.name
        return *innermost(name, line, binary.inlined(address)), function.name


def innermost(name: str, line: SourceLine, inlined: Sequence[InlinedAt]) -> tuple[str, SourceLine]:
    """The function that the source has at a place in the function ``name``, into which others are inlined (innermost first),
    with its line there; what comes from the system's headers counts as its caller's."""
    for call in inlined:
        if not line.file.startswith(_HEADERS):
            return call.function, line
        line = call.call
    return name, line


def usage(structure: Structure, touches: Sequence[WatchedTouch], places: CodePlaces, last: int) -> tuple[User, ...]:
    """The users of ``structure``, those between calls first, those with most accesses first; ``last`` is the last call of
    the program."""
    groups: dict[tuple[str, str | None, str], list[WatchedTouch]] = {}
    for touch in touches:
        where = places.of(touch)
        groups.setdefault((where.symbol, where.through, "between" if touch.call < last else "after"), []).append(touch)
    users = [_user(structure, group, places, "between" if key[2] == "between" else "after") for key, group in groups.items()]
    order = sorted(users, key=lambda u: (u.when != "between", -len(u.touched), u.where.symbol))
    return tuple(order[: OBSERVE.most_users])


def _user(structure: Structure, touches: list[WatchedTouch], places: CodePlaces, when: Literal["between", "after"]) -> User:
    names = dict.fromkeys(name for touch in touches for name in fields_of(structure, touch.address, touch.bytes))
    known = [f.name for f in sorted((*structure.fields, *structure.cold), key=lambda f: f.offset) if f.name in names]
    fields = (*known, *(name for name in names if name not in known))
    reads = sum(t.kind != "write" for t in touches)
    writes = sum(t.kind != "read" for t in touches)
    return User(places.of(touches[0]), when, reads, writes, fields, tuple(touches))


def fields_of(structure: Structure, address: int, size: int) -> tuple[str, ...]:
    """The fields that an access of ``size`` bytes at ``address`` touches; places that are no known field by their offset."""
    at, element = address - structure.base, structure.element_bytes
    fields = (*structure.fields, *structure.cold)
    if at < 0:
        return ()
    if size >= element:
        return tuple(f.name for f in fields)
    start = at % element
    pieces = [(start, min(start + size, element))] + ([(0, start + size - element)] if start + size > element else [])
    found = [f.name for f in fields for low, high in pieces if f.offset < high and low < f.offset + f.bytes]
    return tuple(dict.fromkeys(found)) or (f"at offset {start}",)


def placement(touches: Sequence[WatchedTouch], places: CodePlaces, first: int, last: int, gapless: bool) -> UserPlacement:
    """The place where a conversion of the structure would have to stand; the touches in the order in which they came. The
    first period tells who comes first and last: the instructions are new then, and looked at most closely."""
    between = [t for t in touches if t.call < last]
    calls = sorted({t.call for t in between})
    writes = [places.of([t for t in between if t.call == c and t.kind != "read"][-1]) for c in _with(between, calls, "read")]
    reads = [
        places.of(next(t for t in between if t.call == c and t.kind != "write")) for c in _with(between, calls, "write")
    ]
    return UserPlacement(
        first, last - first, len(calls), writes[0] if writes else None, reads[0] if reads else None, gapless
    )


def _with(touches: Iterable[WatchedTouch], calls: Sequence[int], other: str) -> list[int]:
    """The periods that have an access of another kind than ``other``."""
    seen = {t.call for t in touches if t.kind != other}
    return [call for call in calls if call in seen]


def between_calls(candidate: Candidate, found: Mapping[str, Usage]) -> tuple[str, ...] | None:
    """The functions that were seen to use a candidate's structures between calls; ``()`` where it is shown that nothing
    does, None where that is not known."""
    known = [found.get(layout.structure.id, Usage()) for layout in candidate.relayouts]
    users = dict.fromkeys(u.where.symbol for usage in known for u in usage.users if u.when == "between")
    if users or all(u.placement is not None and u.placement.gapless and not u.placement.used for u in known):
        return tuple(users)
    return None


@dataclass(frozen=True, slots=True)
class Lines:
    """Cache lines that the accesses seen of a user touch, as the structure lies now and in a candidate's layout."""

    symbol: str
    structure: str
    before: int
    after: int


def lines_elsewhere(candidate: Candidate, found: Mapping[str, Usage]) -> tuple[Lines, ...]:
    """The cache lines that other users of a candidate's structures would touch, by the candidate's own map; modelled, no
    time is claimed. Without those whose elements are stored by class: their map says nothing of the others."""
    result = []
    for layout in candidate.relayouts:
        use = found.get(layout.structure.id)
        if use is None or layout.chosen is not None:
            continue
        for user in use.users:
            counted = _lines(layout, user.touched)
            if counted is not None:
                result.append(Lines(user.where.symbol, layout.structure.id, *counted))
    return tuple(result)


def _lines(layout: Relayout, touches: Sequence[WatchedTouch]) -> tuple[int, int] | None:
    """Distinct lines before and after; None where an access lies outside the elements or touches very much at once."""
    before: set[int] = set()
    after: set[tuple[int, int]] = set()
    for at, size in {(touch.address, touch.bytes) for touch in touches}:
        if size > LINE:
            return None
        before.update(_lines_of(at, size))
        end = at + size
        while at < end:
            place = new_place(layout, at)
            if place is None:
                return None
            buffer, offset, together = place
            together = min(together, end - at)
            after.update((buffer, line) for line in _lines_of(offset, together))
            at += together
    return len(before), len(after)


def _lines_of(start: int, size: int) -> range:
    return range(start // LINE, (start + size - 1) // LINE + 1)


def new_place(layout: Relayout, address: int) -> tuple[int, int, int] | None:
    """Buffer and offset of one byte of the structure in the new layout, and how many bytes from it on stay together. What
    the hotspot does not use is thought to stay an array of structures without the other fields, in buffer -1. None outside
    the elements."""
    structure = layout.structure
    rest, index = address - structure.base, []
    if rest < 0:
        return None
    for dim in structure.dims:
        number, rest = divmod(rest, dim.stride)
        if number >= dim.count:
            return None
        index.append(number)
    for map_ in layout.fields:
        field = structure.fields[map_.field]
        if field.offset <= rest < field.offset + field.bytes:
            return map_.buffer, map_.place(tuple(index)) + rest - field.offset, field.offset + field.bytes - rest
    hot = sum(f.bytes for f in structure.fields)
    number = 0
    for dim, value in zip(structure.dims, index, strict=True):
        number = number * dim.count + value
    above = sum(f.bytes for f in structure.fields if f.offset <= rest)
    following = min((f.offset for f in structure.fields if f.offset > rest), default=structure.element_bytes)
    return -1, number * (structure.element_bytes - hot) + rest - above, max(1, following - rest)
