"""Declarations and names of the lifted values in C: all that a kernel's text generates is named here, so that no two things
share a name."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from layout_advise.mockup.evidence.binding import Access
from layout_advise.mockup.ir.effects import FS_BASE, Gpr, Ty
from layout_advise.mockup.ir.lifted import (
    Assign,
    Atomic,
    Call,
    Item,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    LiveIn,
    Load,
    OpaqueCall,
    Operand,
    RuntimeCall,
    Val,
    Var,
)
from layout_advise.mockup.ir.loop_body import operands

GPR_NAMES = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16)), "fs_base")
COUNTERS = "ijklmnopq"
RESERVED = frozenset(("context", "call", "given", "before", "lane", "e", "words", "kept"))
"""Names that the text of every kernel may use as they are."""


class Names:
    """Hands out identifiers. What is wanted (``d3_0``, a field's name) is changed where something else is called so."""

    def __init__(self, taken: Iterable[str] = RESERVED) -> None:
        self.taken = set(taken)
        self._by_key: dict[Hashable, str] = {}

    def new(self, wanted: str) -> str:
        """Returns ``wanted``, or with a number behind it where that is taken."""
        name, number = wanted, 0
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name

    def of(self, key: Hashable, wanted: str) -> str:
        """Returns the name of ``key``, which it keeps; the first time a :meth:`new` one."""
        if key not in self._by_key:
            self._by_key[key] = self.new(wanted)
        return self._by_key[key]


def identifier(text: str) -> str:
    """``text`` as a C identifier."""
    word = re.sub(r"\W+", "_", text).strip("_") or "field"
    return f"_{word}" if word[0].isdigit() else word


def defined(item: Item) -> Val | None:
    """The value that ``item`` defines."""
    if isinstance(item, Let | LetLinear | Load | Call):
        return item.value
    return item.counter if isinstance(item, LiftedLoop) else None


@dataclass(slots=True)
class Scope:
    """``names`` of values; ``hoisted`` are those used outside the body that defines them; ``variables`` all of them."""

    names: dict[int, str] = field(default_factory=dict)
    given: Names = field(default_factory=Names)
    """Where ``names`` come from."""
    counters: set[int] = field(default_factory=set)
    """Numbers of the loops' counters; those of loops of one depth share a name."""
    hoisted: dict[int, Ty] = field(default_factory=dict)
    variables: dict[int, Ty] = field(default_factory=dict)
    uses: dict[int, int] = field(default_factory=dict)
    calls: dict[str, tuple[Ty, tuple[Ty, ...]]] = field(default_factory=dict)
    opaque: bool = False
    """Whether there are calls of functions that are not lifted."""
    returned: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    """By statement number of such a call: the values read of what it returns, with their registers."""
    runtime: dict[str, int] = field(default_factory=dict)
    """Functions of OpenMP's runtime that are called: how many variables they are handed pointers to."""
    atomic: bool = False
    """Whether there are atomic operations."""
    live_ins: frozenset[int] = frozenset()
    """Values that arrive in whole general registers."""


def analyse(lifted: Lifted) -> Scope:
    """Names, declarations and use counts for the whole hotspot."""
    scope = Scope()
    home: dict[int, tuple[int, ...]] = {live.value.number: () for live in lifted.live_ins}
    for live in lifted.live_ins:
        scope.names[live.value.number] = scope.given.new(live_in_name(live))
    scope.live_ins = frozenset(
        live.value.number
        for live in lifted.live_ins
        if isinstance(live.location, Gpr) and live.value.ty == "i64" and live.location != FS_BASE
    )
    _walk(lifted.body, (), scope, home)
    for out in lifted.live_outs:
        _use(out.operand, (), scope, home)
    return scope


def gathers(reached: Iterable[Access], scope: Scope) -> dict[int, list[tuple[Val, int]]]:
    """Number of an index value -> (base, bytes an element) where records that the index picks are accessed in several
    places: base plus index times size, and a constant. A source has a pointer to the element there; without one gcc worked
    out each address anew, and did not see which fields are neighbours."""
    offsets: dict[tuple[Val, Val, int], set[int]] = {}
    for access in reached:
        terms = [(atom, coef) for atom, coef in access.address.terms if isinstance(atom, Val)]
        if len(terms) != 2 or len(access.address.terms) != 2:
            continue
        for (base, one), (index, stride) in (terms, terms[::-1]):
            if one == 1 and base.number in scope.live_ins and index.number not in scope.live_ins | scope.counters:
                offsets.setdefault((base, index, stride), set()).add(access.address.const)
    found: dict[int, list[tuple[Val, int]]] = {}
    for (base, index, stride), places in offsets.items():
        if len(places) > 1:
            found.setdefault(index.number, []).append((base, stride))
    return found


def live_in_name(live: LiveIn) -> str:
    """``rdi``, ``xmm0``, ``ymm3_2`` (64-bit lane 2), ``xmm0_1h`` (its upper half)."""
    if isinstance(live.location, Gpr):
        name = GPR_NAMES[live.location.number]
    else:
        name = f"xmm{live.location.number}" + (f"_{live.location.index}" if live.location.index else "")
    suffix = "" if live.half is None else ("_lo", "_hi")[live.half]
    return f"{name}{suffix}" + ("" if live.value.ty in ("i64", "f64") or suffix else f"_{live.value.ty}")


def _walk(body: Sequence[Item], path: tuple[int, ...], scope: Scope, home: dict[int, tuple[int, ...]]) -> None:
    for item in body:
        for operand in operands(item):
            _use(operand, path, scope, home)
        value = defined(item)
        if value is not None and not isinstance(item, LiftedLoop):
            home[value.number] = path
        if isinstance(item, Assign):
            scope.variables[item.variable.number] = item.variable.ty
        elif isinstance(item, Call):
            scope.calls[item.function] = (item.value.ty, tuple(a.ty for a in item.args))
        elif isinstance(item, OpaqueCall):
            scope.opaque = True
            scope.returned[item.uid] = []
        elif isinstance(item, Let) and item.name.startswith("returned."):
            scope.returned[next(reversed(scope.returned))].append((item.value.number, item.name.removeprefix("returned.")))
        elif isinstance(item, RuntimeCall):
            scope.runtime[item.function] = item.places
        elif isinstance(item, Atomic):
            scope.atomic = True
        elif isinstance(item, LiftedLoop):
            home[item.counter.number] = (*path, item.uid)
            depth = len(path)
            wanted = COUNTERS[depth] if depth < len(COUNTERS) else f"i{depth}"
            scope.names[item.counter.number] = scope.given.of(("counter", depth), wanted)
            scope.counters.add(item.counter.number)
            _walk(item.body, (*path, item.uid), scope, home)


def _use(operand: Operand, path: tuple[int, ...], scope: Scope, home: dict[int, tuple[int, ...]]) -> None:
    if isinstance(operand, Var):
        scope.variables[operand.number] = operand.ty
    elif isinstance(operand, Val):
        scope.uses[operand.number] = scope.uses.get(operand.number, 0) + 1
        where = home.get(operand.number, ())
        if path[: len(where)] != where:
            scope.hoisted[operand.number] = operand.ty
