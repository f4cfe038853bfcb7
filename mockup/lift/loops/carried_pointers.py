"""Pointers that a loop carries and moves by whole elements, as ``base + stride * index`` with the index carried instead.

Where a loop steps over rows in an inner loop (a search for the next row that counts) its pointer has no closed form in a
counter: it goes on by ``stride * (j + 1)``, and j differs from row to row. The access would have to be cut into digits by a
division at each row, which the original does not pay. But whatever path is taken, what is added is a multiple of the stride.
By induction over the assignments the pointer is ``base + stride * index`` modulo 2**64, always, if each value it is given is
either that of such a pointer plus a multiple of the stride, or the base plus one.

So is a pointer that is computed anew in a loop, in another way on each path (the larger child of a heap's element, the probe
of a hash table, ``table + 24 * hash``), if all agree in the base and are apart by multiples of the stride.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import gcd

from layout_advise.mockup.ir.node import SIDE_EFFECTS, Node
from layout_advise.mockup.ir.value_graph import Graph, parts
from layout_advise.mockup.lift.ssa import SsaProgram, rewrite

_CARRIES = ("phi", "exitphi")

Terms = tuple[tuple[Node, int], ...]


@dataclass(frozen=True, slots=True)
class _Given:
    """A value that a web's variable is given: ``member`` (None: it comes from outside) ``+ const + sum(coef * atom)``."""

    member: Node | None
    const: int
    terms: Terms


@dataclass(frozen=True, slots=True)
class Web:
    """Variables that are all ``const + sum(terms) + stride * index``, each with its own index."""

    members: tuple[Node, ...]
    stride: int
    const: int
    terms: Terms


def index_carried(program: SsaProgram) -> bool:
    """Replaces the pointers that loops carry or compute by indices (in place); returns whether there were any. Pointers with
    a closed form are gone before."""
    heads = [(head, _carried) for head in program.flow.loops]
    within = [
        (block, _computed) for block in sorted(set[int]().union(*(loop.blocks for loop in program.flow.loops.values())))
    ]
    found, seen = False, _seen(program)
    for block, kind in (*heads, *within):
        done: set[Node] = set()
        while (web := _next_web(program.phis.get(block, ()), seen, kind, done)) is not None:
            made = _replace(program, web)
            _share(program, made)
            done.update(made)
            found, seen = True, _seen(program)
    return found


Users = Mapping[Node, list[Node]]


@dataclass(frozen=True, slots=True)
class _Seen:
    """The values of a program that anything needs, the variables given each of them, and the atoms of addresses."""

    live: Mapping[Node, None]
    users: Users
    reached: frozenset[Node]


def _seen(program: SsaProgram) -> _Seen:
    live = program.live()
    reached = {
        atom
        for events in program.events.values()
        for event in events
        if event.op in ("load", "store", "atomic", "prefetch") and (event.op in SIDE_EFFECTS or event in live)
        for atom, _ in parts(event.args[0])[1]
    }
    return _Seen(live, _users(live), frozenset(reached))


def _next_web(phis: Iterable[Node], seen: _Seen, kind: Callable[[Node, Users], Web | None], done: set[Node]) -> Web | None:
    """A web of this ``kind`` around one of a block's variables that memory is reached through; ``done`` are those looked
    at."""
    for phi in phis:
        if phi.ty != "i64" or phi not in seen.live or phi in done:
            continue
        done.add(phi)
        web = kind(phi, seen.users)
        if web is not None:
            web = _grown(web, seen.users)
            if not seen.reached.isdisjoint(web.members):
                return web
    return None


def _carried(phi: Node, users: Users) -> Web | None:
    """The web of a variable that goes round a loop."""
    cycle = _cycle(phi, users)
    web = web_of(cycle) if any(source in cycle for source in _sources(phi)) else None
    return web if web is not None and web.stride > 1 else None


def _computed(phi: Node, users: Users) -> Web | None:
    """The web of a variable that is worked out on each path to where these meet. What differs by constants only is a field
    that is chosen, and no index."""
    for members in dict.fromkeys(((phi,), tuple(_needed(phi, set())))):
        web = web_of(members)
        if web is not None and web.stride > 1:
            counted = any(coef % web.stride == 0 for one in members for arg in one.args for _, coef in parts(arg)[1])
            return web if counted else None
    return None


def _users(live: Iterable[Node]) -> Users:
    """The variables that are given the value of a variable, plus something or as it is."""
    found: dict[Node, list[Node]] = {}
    for node in live:
        if node.op in _CARRIES and node.ty == "i64":
            for source in _sources(node):
                found.setdefault(source, []).append(node)
    return found


def _sources(node: Node) -> list[Node]:
    """The variables whose value ``node`` may be given, plus something or as it is."""
    atoms = (atom for arg in node.args for atom, coef in parts(arg)[1] if coef == 1)
    return [atom for atom in dict.fromkeys(atoms) if atom.op in _CARRIES]


def _cycle(phi: Node, users: Users) -> tuple[Node, ...]:
    """``phi`` and the variables that it goes through on its way around the loop."""
    around = _closure(phi, lambda node: users.get(node, ())) & _closure(phi, _sources)
    return (phi, *sorted(around - {phi}, key=lambda node: node.uid))


def _closure(start: Node, onward: Callable[[Node], Iterable[Node]]) -> set[Node]:
    found = {start}
    work = [start]
    while work:
        ahead = [node for node in onward(work.pop()) if node.ty == "i64" and node not in found]
        found.update(ahead)
        work += ahead
    return found


def web_of(members: tuple[Node, ...]) -> Web | None:
    """The stride and the base of ``members``; None where one is given a value of another kind."""
    inside = set(members)
    given = [_given(arg, inside) for member in members for arg in member.args]
    sound = [one for one in given if one is not None]
    outside = [one for one in sound if one.member is None]
    if len(sound) < len(given) or not outside:
        return None
    first = outside[0]
    apart = [one if one.member else _difference(one, first) for one in sound]
    stride = gcd(*(number for one in apart for number in (one.const, *(coef for _, coef in one.terms))))
    if stride == 0:
        return None
    return Web(members, stride, first.const, tuple((atom, coef) for atom, coef in first.terms if coef % stride))


def _given(value: Node, inside: set[Node]) -> _Given | None:
    const, terms = parts(value)
    members = [(atom, coef) for atom, coef in terms if atom in inside]
    if not members:
        return _Given(None, const, tuple(terms))
    if len(members) > 1 or members[0][1] != 1:
        return None
    return _Given(members[0][0], const, tuple(term for term in terms if term[0] not in inside))


def _difference(one: _Given, other: _Given) -> _Given:
    coefs = dict(one.terms)
    for atom, coef in other.terms:
        coefs[atom] = coefs.get(atom, 0) - coef
    return _Given(None, one.const - other.const, tuple(coefs.items()))


def _grown(web: Web, users: Users) -> Web:
    """``web`` with the variables that hold its pointers behind the loop or where paths meet, as far as they keep its stride
    and base."""
    refused: set[Node] = set()
    while True:
        inside = set(web.members)
        ahead = [u for m in web.members for u in users.get(m, ()) if u not in inside and u not in refused]
        if not ahead:
            return web
        wider = web_of((*web.members, *_needed(ahead[0], inside)))
        if wider is not None and (wider.stride, wider.const, wider.terms) == (web.stride, web.const, web.terms):
            web = wider
        else:
            refused.add(ahead[0])


def _needed(node: Node, inside: set[Node]) -> list[Node]:
    """``node`` and the variables outside the web that its value may come from."""
    return sorted(_closure(node, lambda one: (s for s in _sources(one) if s not in inside)), key=lambda one: one.uid)


def _replace(program: SsaProgram, web: Web) -> list[Node]:
    """Carry indices instead of the web's pointers; the new variables."""
    g = program.graph
    indices: dict[Node, Node] = {}
    for member in web.members:
        g.block, g.origin = member.block, member.origin
        indices[member] = g.raw(member.op, "i64", member.args, member.imm)
        assert member.block is not None
        kept = program.phis if member.op == "phi" else program.exits
        kept.setdefault(member.block, []).append(indices[member])
    replace: dict[Node, Node] = {}
    for member, index in indices.items():
        g.block, g.origin = member.block, member.origin
        index.args = tuple(index_of(g, web, arg, indices) for arg in member.args)
        replace[member] = g.lin("i64", web.const, (*web.terms, (index, web.stride)))
    rewrite(program, replace)
    return list(indices.values())


def index_of(g: Graph, web: Web, value: Node, indices: Mapping[Node, Node]) -> Node:
    """The index of ``value``, which one of the web's pointers is given."""
    given = _given(value, set(web.members))
    assert given is not None
    if given.member is None:
        base = _Given(None, web.const, web.terms)
        given = _difference(given, base)
    own = () if given.member is None else ((indices[given.member], 1),)
    assert all(number % web.stride == 0 for number in (given.const, *(coef for _, coef in given.terms)))
    return g.lin("i64", given.const // web.stride, (*own, *((a, c // web.stride) for a, c in given.terms)))


def _share(program: SsaProgram, made: list[Node]) -> None:
    """Replaces a made index by an equal one that the loop carries already (the source's own)."""
    live = program.live()
    variables = [n for n in live if n.op in _CARRIES and n.ty == "i64"]
    kinds = _alike(variables)
    older = {kinds[node]: node for node in sorted(variables, key=lambda node: -node.uid) if node not in made}
    rewrite(program, {node: older[kinds[node]] for node in made if node in live and kinds[node] in older})


def _alike(variables: list[Node]) -> dict[Node, int]:
    """Numbers of the variables, the same for those that always hold the same value: assigned at one place, the same sums of
    variables that are alike (Alpern, Wegman and Zadeck, POPL 1988: split until nothing splits)."""
    kinds: dict[Node, int] = dict.fromkeys(variables, 0)
    while True:
        numbers: dict[object, int] = {}
        signs = {node: (kinds[node], node.op, node.block, *(_sign(a, kinds) for a in node.args)) for node in variables}
        finer = {node: numbers.setdefault(sign, len(numbers)) for node, sign in signs.items()}
        if len(numbers) == len(set(kinds.values())):
            return finer
        kinds = finer


def _sign(value: Node, kinds: Mapping[Node, int]) -> tuple[int, tuple[tuple[bool, int, int], ...]]:
    const, terms = parts(value)
    return const, tuple(sorted((a in kinds, kinds.get(a, a.uid), c) for a, c in terms))
