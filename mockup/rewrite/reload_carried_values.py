"""Values that a loop loads and carries to its next iterations, loaded again there.

Compilers keep what a loop over neighbours (``u[i - 1]``, ``u[i]``, ``u[i + 1]``) loads in registers for the iterations to
come: one load is left, and values that go round (predictive commoning; gcc does so at -O3). Of such a loop no compiler makes
vectors, although it would of the same source on another layout. Where a variable is, in iteration k, what was loaded from
``address(k - d)`` in iteration k - d, and before the loop for the first of them, and no iteration stores there in between,
each use becomes a load from ``address(k - d)``. Whether keeping it pays, the mock-up's compiler decides anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from layout_advise.mockup.evidence.binding import accesses
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.evidence.independence import Independence
from layout_advise.mockup.ir.lifted import (
    Assign,
    Atomic,
    Call,
    Item,
    Label,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Load,
    OpaqueCall,
    Operand,
    RuntimeCall,
    Store,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.ir.linear_forms import form_of
from layout_advise.mockup.ir.loop_body import defined, first_free_number, used
from layout_advise.mockup.ir.substitution import substituted
from layout_advise.mockup.rewrite.reroll import loop_accesses

MOST_ITERATIONS = 8
"""A value that goes further round is not looked at."""


def reload_carried_values(lifted: Lifted, evidence: Evidence) -> Lifted:
    """Returns ``lifted`` with what innermost loops carry from loads of earlier iterations loaded again where it is used.

    Needs: the traced addresses, to show that nothing stores there meanwhile.
    Gives: loops without carried values of that kind; each new load has its distance in iterations in ``turn``.
    Keeps: all other statements and their order.
    """
    return _Reloader(lifted, evidence).run()


@dataclass(frozen=True, slots=True)
class _CarriedLoad:
    """A variable of a loop: what ``load`` gave ``back`` iterations ago; its first value is from before the loop."""

    variable: Var
    load: Load
    back: int


class _Reloader:
    """The pass over one hotspot; numbers of its own follow those that are taken."""

    def __init__(self, lifted: Lifted, evidence: Evidence) -> None:
        self.lifted, self.evidence = lifted, evidence
        self.independence = Independence(evidence.binding, evidence.structures, frozenset())
        self.next = first_free_number(lifted)
        self.uses = Counter(used(lifted.body))
        self.uses.update(out.operand for out in lifted.live_outs)
        self.packs: dict[tuple[int, int], int] = {}
        self.given = Counter(i.variable for i in everything(lifted.body) if isinstance(i, Assign))

    def run(self) -> Lifted:
        """The whole hotspot."""
        return replace(self.lifted, body=self._items(self.lifted.body))

    def _items(self, items: Sequence[Item]) -> tuple[Item, ...]:
        found: list[Item] = []
        for item in items:
            if not isinstance(item, LiftedLoop):
                found.append(item)
            elif any(isinstance(inner, LiftedLoop) for inner in item.body):
                found.append(replace(item, body=self._items(item.body)))
            else:
                kept = list(self._carried_loads(found, item))
                gone = {one.variable for one in kept}
                found = [i for i in found if not (isinstance(i, Assign) and i.variable in gone)]
                found.append(self._reloaded(item, kept) if kept else item)
        return tuple(found)

    def _carried_loads(self, before: Sequence[Item], loop: LiftedLoop) -> Iterator[_CarriedLoad]:
        """The variables of the loop that can be loaded again."""
        if any(isinstance(i, Label | Atomic | OpaqueCall | RuntimeCall) for i in loop.body):
            return
        straight = list(straight_before(before))
        first = {i.variable: i.operand for i in reversed(straight) if isinstance(i, Assign)}
        loads = {i.value: i for i in straight if isinstance(i, Load)}
        body = {i.value: i for i in loop.body if isinstance(i, Load)}
        moves = {i.variable: i for i in loop.body if isinstance(i, Assign)}
        inside = Counter(used(loop.body))
        for variable in moves:
            found = self._carried_load(variable, moves, body)
            begin = loads.get(first.get(variable))  # type: ignore[arg-type]
            if found is None or begin is None or self.given[variable] != 2 or inside[variable] != self.uses[variable]:
                continue
            again = _earlier(found.load, loop, found.back, found.load.value)
            if _starts_as(begin, again, loop) and self._of_one_structure(begin, found.load) and self._untouched(again, loop):
                yield found

    def _carried_load(self, variable: Var, moves: Mapping[Var, Assign], body: Mapping[Val, Load]) -> _CarriedLoad | None:
        """From which load, and how many iterations ago, a variable has its value."""
        at, group = variable, moves[variable].group
        for back in range(1, MOST_ITERATIONS + 1):
            move = moves.get(at)
            if move is None or move.group != group:
                return None
            if isinstance(move.operand, Val):
                load = body.get(move.operand)
                plain = load is not None and load.value.ty in ("f32", "f64") and not load.lanes and not load.guarded
                return _CarriedLoad(variable, load, back) if load is not None and plain else None
            if not isinstance(move.operand, Var):
                return None
            at = move.operand
        return None

    def _of_one_structure(self, begin: Load, load: Load) -> bool:
        """Returns whether both loads are of one structure (or of none, or of the same ones)."""
        return self.evidence.reached_by(begin) == self.evidence.reached_by(load)

    def _untouched(self, again: Load, loop: LiftedLoop) -> bool:
        """Returns whether nothing that an iteration stores is what another one, or the same, loads again."""
        (loaded,) = loop_accesses([again], loop)
        stores = loop_accesses((a for a in accesses(loop.body) if isinstance(a, Store)), loop)
        return all(self.independence.apart(s, loaded) and self.independence.iterations_apart(s, loaded) for s in stores)

    def _reloaded(self, loop: LiftedLoop, kept: Sequence[_CarriedLoad]) -> LiftedLoop:
        known: dict[Operand, Operand] = {}
        loads: list[Item] = []
        for one in kept:
            value = Val(self.next, one.load.value.ty)
            self.next += 1
            known[one.variable] = value
            load = _earlier(one.load, loop, one.back, value)
            pack = load.origin.pack
            if pack is not None:  # a vector is loaded again as a vector
                pack = self.packs.setdefault((pack, one.back), -1 - len(self.packs))
            loads.append(replace(load, origin=replace(load.origin, pack=pack), turn=(*load.turn, -one.back)))
        loads.sort(key=lambda item: isinstance(item, Load) and (item.origin.pack or 0, item.part))
        body = substituted((i for i in loop.body if not (isinstance(i, Assign) and i.variable in known)), known)
        return replace(loop, body=(*loads, *body))


def straight_before(items: Sequence[Item]) -> Iterator[Item]:
    """The last of ``items``, the last one first, as far as none of them jumps, is jumped to, or stores."""
    for item in reversed(items):
        if not isinstance(item, Let | LetLinear | Load | Call | Assign):
            return
        yield item


def _earlier(load: Load, loop: LiftedLoop, back: int, value: Val) -> Load:
    """The load of ``back`` iterations ago."""
    distance = back * form_of(load.address, loop.counter).step
    const = (load.address.const - distance) % (1 << 64)
    return replace(load, value=value, address=replace(load.address, const=const), part=load.part - distance)


def _starts_as(begin: Load, again: Load, loop: LiftedLoop) -> bool:
    """Returns whether ``begin`` loads what ``again`` does in the first iteration."""
    terms = {atom: coef for atom, coef in again.address.terms if atom != loop.counter}
    same = again.address.const == begin.address.const % (1 << 64) and terms == dict(begin.address.terms)
    changed = set(defined(loop.body))
    return same and begin.value.ty == again.value.ty and not changed & terms.keys() and begin.turn == again.turn
