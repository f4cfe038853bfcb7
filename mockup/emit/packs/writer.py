"""Packs of lanes as vector statements (:mod:`layout_advise.mockup.emit.packs.find`), with what else uses their lanes."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.mockup.emit.packs.pack import Pack, Packs
from layout_advise.mockup.emit.program import BodyWriter
from layout_advise.mockup.emit.writer_state import WriterContext
from layout_advise.mockup.ir.lifted import Assign, Item, Let, Operand, Store, Val, Var

_SIGNS = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}


class PackWriter(BodyWriter):
    """Writes bodies with packs; a lane is called ``p3[1]``."""

    def __init__(self, context: WriterContext, packs: Packs) -> None:
        super().__init__(context)
        self.packs = packs
        self.lane_of: dict[int, tuple[str, int, int]] = {}
        """Number of a value or variable -> (vector, lane in it, lanes of it)."""
        self.vectors: list[tuple[str, str]] = []
        """Type and name of what is assigned in several places."""
        self.written = 0
        for variables in packs.variables:
            name = self.given.new(f"x{variables[0].number}_{variables[-1].number}")
            self.vectors.append((f"la_{variables[0].ty}x{len(variables)}", name))
            self.lane_of |= {v.number: (name, lane, len(variables)) for lane, v in enumerate(variables)}

    def text(self, operand: Operand) -> str:
        """An operand; a lane of a vector by its place there."""
        if isinstance(operand, Val | Var) and operand.number in self.lane_of:
            name, lane, _ = self.lane_of[operand.number]
            return f"{name}[{lane}]"
        return super().text(operand)

    def body(self, items: Sequence[Item]) -> None:
        """All items of a body, packs at once."""
        at = start = 0
        while at < len(items):
            pack = self.packs.at.get(items[at].uid)
            if pack is None:
                at += 1
                continue
            super().body(items[start:at])
            for item in pack.members:
                for site in self.plan.sites.get(item.uid, ()):
                    self.site(site)
            self.pack(pack)
            start = at = at + len(pack.members)
        super().body(items[start:])

    def pack(self, pack: Pack) -> None:
        """One vector statement."""
        first = pack.members[0]
        if isinstance(first, Let):
            self.define(pack, self.formula(pack, [self.vector(column) for column in pack.columns()]))
            return
        (place,) = self.pieces(first, self.plan.places.get(first.uid))
        cell = f"la_{pack.ty}x{pack.lanes}_u"  # compilers of sources seldom know of an alignment either
        if isinstance(first, Store):
            self.put(f"*({cell} *)({place}) = {self.vector(pack.columns()[0])};")
        else:
            self.define(pack, f"*(const {cell} *)({place})")

    def define(self, pack: Pack, text: str) -> None:
        """A vector; what is read in other bodies has a name of its own."""
        self.written += 1
        name = self.given.new(f"p{self.written}")
        self.put(f"const la_{pack.ty}x{pack.lanes} {name} = {text};")
        for lane, item in zip(pack.numbers, pack.members, strict=True):
            assert not isinstance(item, Store)
            if item.value.number in self.scope.hoisted:
                self.put(f"{self.declare(item.value)} = {name}[{lane}];")
            else:
                self.lane_of[item.value.number] = name, lane, pack.lanes

    def formula(self, pack: Pack, args: Sequence[str]) -> str:
        """The operation on whole vectors. No ``LA_PRODUCT``: gcc cuts it into lanes where it is a vector's, and fuses only
        what it vectorises itself."""
        if pack.name in _SIGNS:
            return f"{args[0]} {_SIGNS[pack.name]} {args[1]}"
        if pack.name == "fneg":
            return f"-{args[0]}"
        name = pack.name.removeprefix("f") if pack.name in _PLAIN else pack.name
        return f"la_{name}_{pack.ty}x{pack.lanes}({', '.join(args)})"

    def vector(self, column: Sequence[Operand | None]) -> str:
        """Operands side by side: a vector that holds just these, or one put together."""
        counting = [a for a in column if a is not None]
        places = {lane: self.lane_of.get(a.number) for lane, a in enumerate(column) if isinstance(a, Val | Var)}
        names = {place[0] for place in places.values() if place is not None}
        if len(names) == 1 and len(places) == len(counting):
            (name,) = names
            if all(place == (name, lane, len(column)) for lane, place in places.items()):
                return name
        texts = [self.text(counting[0] if a is None else a) for a in column]
        return f"(la_{counting[0].ty}x{len(column)}){{{', '.join(texts)}}}"

    def moves(self, group: Sequence[Assign]) -> None:
        """Parallel moves, vectors as a whole."""
        wholes = [v for v in self.packs.variables if set(v) <= {a.variable for a in group}]
        if not wholes:
            super().moves(group)
            return
        given = {a.variable: a.operand for a in group}
        single = [a for a in group if not any(a.variable in v for v in wholes)]
        texts = self.codes_moved(single)
        texts += [
            (f"la_{v[0].ty}x{len(v)}", self.lane_of[v[0].number][0], self.vector([given[one] for one in v])) for v in wholes
        ]
        texts += self.values_moved(single)
        names = {name.partition("[")[0] for _, name, _ in texts}
        read = {self.held(a.operand).partition("[")[0] for a in group if isinstance(a.operand, Var)}
        self.in_parallel(texts, through=len(texts) > 1 and bool(names & read))


_PLAIN = frozenset(("fmin", "fmax", "fsqrt", "fabs"))
