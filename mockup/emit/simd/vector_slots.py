"""Loops whose iterations run side by side, an element a lane, in vector types; what remains runs one by one behind.

Consecutive elements that lie one after another in a field (AoSoA, SoA) are loaded and stored as vectors, others lane by
lane; what all iterations share is spread; variant branches become masks and selections. Order and rounding within an element
are the original's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layout_advise.errors import NotVectorisedError
from layout_advise.layoutalgebra.derive.structure import Axis
from layout_advise.mockup.emit.c_text import CTYPE, integer
from layout_advise.mockup.emit.c_text import operation as scalar_operation
from layout_advise.mockup.emit.program import BodyWriter
from layout_advise.mockup.emit.simd import vector_text
from layout_advise.mockup.emit.simd.iterations import SimdIterations
from layout_advise.mockup.emit.writer_state import WriterContext
from layout_advise.mockup.evidence.binding import Access, access_bytes
from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.lifted import (
    Assign,
    Call,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    LetLinear,
    LiftedLoop,
    Load,
    Operand,
    Store,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.remap.field_runs import RunPiece
from layout_advise.mockup.remap.plan import ElementPlace, IndexTerm, Site


class LaneWriter(BodyWriter):
    """Writes the loops in ``context.simd.abreast`` so; ``lane`` is the one that texts of varying operands are of."""

    def __init__(self, context: WriterContext) -> None:
        super().__init__(context)
        self.side: SimdIterations | None = None  # of the loop that is being written so
        self.counter: Val | None = None
        self.lane = 0
        self.on: str | None = None  # the mask of the lanes that are where the text is; None: all
        self.masks = 0
        self.around: list[tuple[str, str | None]] = []  # of the bodies around: their mask, and that at their start
        self.waiting: dict[int, str] = {}  # label -> the mask of the lanes that wait there
        self.position: dict[int, int] = {}
        self.lined: frozenset[int] = frozenset()  # accesses in split dimensions whose lanes stay in one block
        self.within_block = False

    # ---- names ----------------------------------------------------------------------------------------------------

    def varies(self, operand: Operand) -> bool:
        """Whether ``operand`` is a value of its own in each lane."""
        return self.side is not None and self.side.varies(operand)

    def text(self, operand: Operand) -> str:
        """An operand as a scalar: that of the current lane."""
        if self.side is None or not self.side.varies(operand) or isinstance(operand, Imm):
            return super().text(operand)
        step = self.side.runs.get(operand.number) if isinstance(operand, Val) else None
        if step is not None:
            name, ahead = super().text(operand), step * self.lane
            return f"({name} {'+' if ahead > 0 else '-'} {abs(ahead)})" if ahead else name
        return f"{self.vector_name(operand)}[{self.lane}]"

    def vector_name(self, operand: Val | Var) -> str:
        """The name of all lanes of a value; another than the scalar's where that is declared outside."""
        name = super().text(operand)
        return f"{name}_all" if isinstance(operand, Var) or operand.number in self.scope.hoisted else name

    def vector(self, operand: Operand) -> str:
        """An operand as a vector."""
        ty = operand.ty
        if self.side is None or not self.side.varies(operand) or isinstance(operand, Imm):
            return f"la_all_{'mask' if ty == 'i1' else ty}({super().text(operand)})"
        step = self.side.runs.get(operand.number) if isinstance(operand, Val) else None
        if step is not None:
            return f"la_run_{ty}({super().text(operand)}, {step if ty == 'i64' else step % (1 << 32)})"
        return self.vector_name(operand)

    def define(self, value: Val, text: str) -> None:
        """The definition of a varying value."""
        kind = "" if value.number in self.scope.hoisted else f"const {vector_text.VECTOR[value.ty]} "
        self.scope.names.setdefault(value.number, f"v{value.number}")
        self.put(f"{kind}{self.vector_name(value)} = {text};")

    def each(self, ty: Ty, texts: Sequence[str]) -> str:
        """A vector of scalars, by lane."""
        return f"({vector_text.VECTOR[ty]}){{{', '.join(texts)}}}"

    # ---- the loop -------------------------------------------------------------------------------------------------

    def begun(self, loop: LiftedLoop, name: str, trip: str) -> str:
        """The loop over whole vectors of elements."""
        side = self.context.simd.abreast.get(loop.uid)
        if side is None:
            return super().begun(loop, name, trip)
        assert self.side is None
        lanes, start = self.context.simd.lanes, self.start(name)
        kept = dict(self.cuts), dict(self.elements), dict(self.labels), set(self.sites_written)
        self.side, self.counter, self.copies = side, loop.counter, self.copies + 1
        borders = self._borders(loop)
        self.put(f"int64_t {start} = 0;")
        if borders:
            self.put(f"if ((({' | '.join(sorted(borders))}) & {lanes - 1}) == 0) /* whole vectors from block borders on */")
        self.put(f"for (; {start} + {lanes} <= {trip}; {start} += {lanes}) {{ /* {lanes} elements side by side */")
        self.put(f"    const int64_t {name} = {start};")
        self.depth += 1
        self._declare(loop.body)
        self.depth -= 1
        self.labels = self.labels | {n: f"{self.label(n)}_{self.copies}" for n in _labels(loop.body)}
        self.inner(loop.body)
        self.lane = lanes - 1
        for left in side.left:
            self.put(f"    {super().text(left)} = {self.text(left)};")
        self.put("}")
        self.lane, self.side, self.counter, self.lined = 0, None, None, frozenset()
        self.cuts, self.elements, self.labels, self.sites_written = kept
        return start

    def _declare(self, items: Sequence[Item]) -> None:
        """What is assigned in one place and read in another."""
        assert self.side is not None
        for item in everything(items):
            if isinstance(item, Load):
                self.name_load(item, self.plan.places.get(item.uid))
        variables = {i.variable for i in everything(items) if isinstance(i, Assign) and self.varies(i.variable)}
        for variable in sorted(variables, key=lambda v: v.number):
            self.put(f"{vector_text.VECTOR[variable.ty]} {self.vector_name(variable)} = {{0}};")
        for number, value in sorted(self.side.types.items()):
            if number in self.scope.hoisted and number not in self.side.runs:
                self.put(f"{vector_text.VECTOR[value.ty]} {self.vector_name(value)} = {{0}};")

    def _borders(self, loop: LiftedLoop) -> set[str]:
        """Which of its accesses stay in one block for all lanes, and what has to be on a block border for that."""
        lined, borders = set(), set()
        for item in everything(loop.body):
            place = self.plan.places.get(item.uid)
            if place is None or len(place.pieces) != 1 or place.site.number not in self.sites_written:
                continue
            axes = [a for a in place.pieces[0].map.axes if a.part != "whole"]
            if axes and all(self._along(place, place.pieces[0], a, loop.counter) for a in axes):
                lined.add(item.uid)
                borders |= {f"d{place.site.number}_{a.dim}" for a in axes}
        self.lined = frozenset(lined)
        return borders

    def _along(self, place: ElementPlace, piece: RunPiece, axis: Axis, counter: Val) -> bool:
        moving = [t for t in place.terms if t.digits[axis.dim]]
        alone = len(moving) == 1 and moving[0].atom == counter and moving[0].digits[axis.dim] == 1 and not moving[0].shift
        whole_vectors = axis.block % self.context.simd.lanes == 0 and axis.block & (axis.block - 1) == 0
        return alone and whole_vectors and not piece.inner and place.relayout.chosen is None

    # ---- control --------------------------------------------------------------------------------------------------

    def inner(self, items: Sequence[Item]) -> None:
        """A nested body: with masks of its own where only some lanes jump in it."""
        if self.side is None:
            super().inner(items)
            return
        self.depth += 1
        kept = self.on, self.waiting, self.position
        masked = [i.label for i in items if isinstance(i, Goto) and i.uid in self.side.masked]
        outer, name = self.on, ""
        if masked:
            self.masks += 1
            name = f"on{self.masks}"
            self.put(f"la_mask {name} = {outer or 'la_all_mask(1)'};")
            for label in sorted(set(masked)):
                self.put(f"la_mask {name}_to_{self.label(label)} = {{0}};")
        self.waiting, self.position = {}, {i.number: k for k, i in enumerate(items) if isinstance(i, Label)}
        self.around.append((name, outer))
        self.body(items)
        self.around.pop()
        self.on, self.waiting, self.position = kept
        self.depth -= 1

    def jump(self, goto: Goto) -> None:
        """Some lanes jump: they wait at the label for the others."""
        name, _ = self.around[-1]
        going = "" if goto.condition is None else f" & {self.vector(goto.condition)}"
        target = f"{name}_to_{self.label(goto.label)}"
        self.put(f"{target} |= {name}{going};")
        self.put(f"{name} &= ~{target};")
        self.on, self.waiting[goto.label] = name, target
        if all(self.position[other] >= self.position[goto.label] for other in self.waiting):
            self.put(f"if (!la_any({name})) goto {self.label(goto.label)};")

    def arrive(self, label: Label) -> None:
        """The lanes that wait here go on."""
        name, outer = self.around[-1]
        target = self.waiting.pop(label.number, None)
        if target is not None:
            self.put(f"{name} |= {target};")
            self.on = self.on if self.waiting else outer

    # ---- statements -----------------------------------------------------------------------------------------------

    def item(self, item: Item) -> None:
        """One item; what all lanes share as ever."""
        if self.side is None:
            super().item(item)
        elif isinstance(item, Goto) and item.uid in self.side.masked:
            self.jump(item)
        elif isinstance(item, Label):
            super().item(item)
            self.arrive(item)
        elif isinstance(item, Let | LetLinear) and not self.scope.uses.get(item.value.number):
            return
        elif isinstance(item, Let | LetLinear | Call) and self.varies(item.value):
            self.formula(item)
        elif isinstance(item, Let) and item.name in vector_text.FAULTING and self.on is not None:
            text = scalar_operation(item.name, item.value.ty, [self.text(a) for a in item.args], [a.ty for a in item.args])
            self.put(f"{self.declare(item.value)} = la_any({self.on}) ? {text} : 0;")
        else:
            super().item(item)

    def formula(self, item: Let | LetLinear | Call) -> None:
        """A varying value that is computed."""
        assert self.side is not None
        if item.value.number in self.side.runs:
            super().item(item)
            return
        ty = item.value.ty
        if isinstance(item, LetLinear):
            self.define(item.value, self.each(ty, self.by_lane(lambda: self.linear(item.linear, wide=True))))
            return
        types = [a.ty for a in item.args]
        text: str | None = None
        if isinstance(item, Let) and item.name == "select" and not self.varies(item.args[0]):
            text = f"{self.text(item.args[0])} ? {self.vector(item.args[1])} : {self.vector(item.args[2])}"
        elif isinstance(item, Let):
            text = vector_text.operation(item.name, ty, [self.vector(a) for a in item.args], types)
        if text is None:
            name, call = item.name if isinstance(item, Let) else "", isinstance(item, Call)

            def one() -> str:
                args = [self.text(a) for a in item.args]
                if isinstance(item, Call):
                    return f"la_libm_{item.function}({', '.join(args)})"
                return scalar_operation(name, ty, args, types)

            self.define(item.value, self.each(ty, self.by_lane(one, guarded=call or name in vector_text.FAULTING)))
            return
        self.define(item.value, text)

    def by_lane(self, text: Callable[[], str], *, guarded: bool = False) -> list[str]:
        """A text for each lane; ``guarded``: 0 in those that are not here."""
        found = []
        for lane in range(self.context.simd.lanes):
            self.lane = lane
            one = text()
            found.append(f"{self.on}[{self.lane}] ? {one} : 0" if guarded and self.on is not None else one)
        self.lane = 0
        return found

    def moves(self, group: Sequence[Assign]) -> None:
        """Parallel moves; under a mask the other lanes keep what they have."""
        if self.side is None:
            super().moves(group)
            return
        written = {a.variable for a in group}
        clash = any(isinstance(a.operand, Var) and a.operand in written - {a.variable} for a in group)
        later: list[str] = []
        for assign in group:
            variable, varying = assign.variable, self.varies(assign.variable)
            self.lane = self.context.simd.lanes - 1 if variable.number in self.side.last else 0
            name = self.vector_name(variable) if varying else self.text(variable)
            value = self.vector(assign.operand) if varying else self.text(assign.operand)
            if varying and self.on is not None:
                value = vector_text.select(variable.ty, self.on, value, name)
            if clash:
                self.temporaries += 1
                kind = vector_text.VECTOR[variable.ty] if varying else CTYPE[variable.ty]
                self.put(f"const {kind} t{self.temporaries} = {value};")
                value = f"t{self.temporaries}"
                later.append(f"{name} = {value};")
            else:
                self.put(f"{name} = {value};")
        self.lane = 0
        for line in later:
            self.put(line)

    # ---- memory ---------------------------------------------------------------------------------------------------

    def cut_indices(self, value: Val) -> None:
        """Only of indices that all lanes share."""
        if not self.varies(value):
            super().cut_indices(value)

    def site(self, site: Site) -> None:
        """Raises NotVectorisedError where each lane has another site."""
        if any(self.varies(atom) for atom, _ in site.offset.terms):
            what = f"the loop over elements of {site.relayout.structure.name} is not written for SIMD"
            raise NotVectorisedError(what, "where an element lies is found by division for each one")
        super().site(site)

    def split_terms(self, place: ElementPlace, piece: RunPiece) -> list[str]:
        """In a block that all lanes share."""
        if self.side is None or self.counter is None or not self.within_block:
            return super().split_terms(place, piece)
        j, terms = self.text(self.counter), []
        for axis in piece.map.axes:
            if axis.part == "div" and axis.stride:
                digit = f"d{place.site.number}_{axis.dim}"
                terms.append(f"{axis.stride} * (({digit} + {j}) >> {axis.block.bit_length() - 1})")
            elif axis.part == "mod" and axis.block > self.context.simd.lanes:
                digit = f"d{place.site.number}_{axis.dim}"
                terms.append(f"{axis.stride} * (({digit} + {j}) & {axis.block - 1})")
        return terms

    def step(self, access: Access, place: ElementPlace | None) -> int | None:
        """Bytes from a lane's place to the next one's; None where that is not constant."""
        assert self.side is not None
        if place is None:
            return self.side.run(access.address)
        if len(place.pieces) != 1:
            return None
        total = 0
        for term in place.terms:
            if self.varies(term.atom):
                step = self._term_step(term, place.pieces[0].map.axes, access.uid in self.lined)
                if step is None:
                    return None
                total += step
        return total

    def _term_step(self, term: IndexTerm, axes: Sequence[Axis], lined: bool) -> int | None:
        assert self.side is not None
        run = self.side.runs.get(term.atom.number) if isinstance(term.atom, Val) else None
        split = any(a.part != "whole" and term.digits[a.dim] for a in axes)
        if run is None or term.shift or (split and not lined):
            return None
        return run * sum(a.stride * term.digits[a.dim] for a in axes if a.part != "div")

    def places_of(self, access: Access, place: ElementPlace | None) -> list[list[str]] | tuple[str, bool]:
        """By lane the places of the pieces; or the first lane's, where the lanes lie one after another, and whether that
        is a vector's border."""
        step = self.step(access, place)
        self.within_block = access.uid in self.lined
        if step is None:
            result: list[list[str]] = []
            for lane in range(self.context.simd.lanes):
                self.lane = lane
                result.append(self.pieces(access, place))
            self.lane, self.within_block = 0, False
            return result
        (first,) = self.pieces(access, place)
        self.within_block = False
        if step == access_bytes(access):
            return first, place is not None and self._on_border(place)
        self.temporaries += 1
        self.put(f"uint8_t *const p{self.temporaries} = (uint8_t *)({first});")
        return [[f"p{self.temporaries} + {integer(step * n % (1 << 64), 'i64')}"] for n in range(self.context.simd.lanes)]

    def _on_border(self, place: ElementPlace) -> bool:
        """Whether vectors in the new buffers start at multiples of their size."""
        piece, lanes = place.pieces[0], self.context.simd.lanes
        parts = [self.delta(place, piece) + piece.map.offset, *(a.stride for a in piece.map.axes if a.part != "mod")]
        parts += [a.stride * lanes for a in piece.map.axes if a.part == "mod"]
        return all(part % (piece.bytes * lanes) == 0 for part in parts)

    def load(self, load: Load) -> None:
        """A load that lanes share, one of a vector, or one for each lane."""
        if self.side is None:
            super().load(load)
            return
        place, ty, number = self.plan.places.get(load.uid), load.value.ty, load.value.number
        self.name_load(load, place)
        if number not in self.side.values:
            places = self.pieces(load, place)
            text = self.loaded(load, place, places)
            self.put(f"{self.declare(load.value)} = {f'la_any({self.on}) ? {text} : 0' if self.on else text};")
            return
        found = self.places_of(load, place)
        if isinstance(found, list):
            texts = [self.loaded(load, place, places) for places in found]
            if self.on is not None:
                texts = [f"{self.on}[{n}] ? {text} : 0" for n, text in enumerate(texts)]
            self.define(load.value, self.each(ty, texts))
        elif self.on is not None:
            self.define(load.value, f"la_load_{ty}({found[0]}, {self.on})")
        else:
            self.define(load.value, f"*(const la_m{ty}{'' if found[1] else '_u'} *)({found[0]})")

    def store(self, store: Store) -> None:
        """A store of a vector, or one for each lane in their order."""
        if self.side is None:
            super().store(store)
            return
        place = self.plan.places.get(store.uid)
        found = self.places_of(store, place)
        if isinstance(found, tuple):
            value = self.vector(store.stored)
            if self.on is not None:
                self.put(f"la_store_{store.ty}({found[0]}, {self.on}, {value});")
            else:
                self.put(f"*(la_m{store.ty}{'' if found[1] else '_u'} *)({found[0]}) = {value};")
            return
        for lane, places in enumerate(found):
            self.lane = lane
            lines = self.stored(store, place, places, self.text(store.stored))
            guard = f"if ({self.on}[{self.lane}]) " if self.on is not None else ""
            for line in lines:
                self.put(guard + line)
        self.lane = 0


def _labels(items: Sequence[Item]) -> list[int]:
    return [i.number for i in everything(items) if isinstance(i, Label)]


def lanes_text(lanes: int, vector_bytes: int, compared: int) -> str:
    """What a mock-up in lanes includes. Masks are as wide as what is ``compared`` (bytes), as far as a register holds all
    lanes of that: from floats to masks of 8 bytes and back k-means took 1.2 times as long in blocks of four, with AVX2."""
    mask = max(min(8, compared, vector_bytes // lanes), 8 // lanes, 1)
    return "\n".join(
        (
            f"#define LA_LANES {lanes}",
            f"#define LA_MASK_BYTES {mask}",
            f"#define LA_EACH(x) {', '.join(['x'] * lanes)}",
            f"#define LA_NUMBERS {', '.join(str(k) for k in range(lanes))}",
            '#include "lanes.h"',
        )
    )
