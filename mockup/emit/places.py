"""The places of accesses in the new layout: pointers moved, and terms that run with a loop."""

from __future__ import annotations

from layout_advise.layoutalgebra.derive.structure import Axis
from layout_advise.mockup.emit.c_text import integer
from layout_advise.mockup.emit.copies import axis_text, place_text
from layout_advise.mockup.emit.site_indices import SiteIndices, whole_axes
from layout_advise.mockup.emit.writer_state import Cut
from layout_advise.mockup.evidence.binding import Access
from layout_advise.mockup.ir.lifted import Assign, Call, Let, LetLinear, LiftedLoop, Linear, Load, Store, Val
from layout_advise.mockup.remap.field_runs import RunPiece
from layout_advise.mockup.remap.sites import ElementPlace


class ElementPlaces(SiteIndices):
    """Addresses in the new layout."""

    def cut_indices(self, value: Val) -> None:
        """Cuts ``value`` once, here, as source would, where it is an index of its own in a split dimension: not at each
        access in the loops below. The same for pointers to the elements that it picks."""
        if value.number in self.scope.hoisted:
            return
        for base, stride in self.context.gathers.get(value.number, ()):
            self.element(self.base(base), self.linear(Linear(0, ((value, stride),))))
        for number, place in self.plan.places.items():
            if place.site.number not in self.sites_written or number in self.context.wrong:
                continue
            for piece in place.pieces if [t.atom for t in place.terms] == [value] else ():
                moved = self.terms_text(place, piece)
                if moved and not self.split_terms(place, piece) and len(place.relayout.fields) > 1:
                    self.element(self.pointer_at(place.relayout, piece.map, place.site.number), moved.removeprefix(" + "))
            for piece in place.pieces:
                for dim in range(len(place.relayout.structure.dims)):
                    cut = _cut(place, piece, dim)
                    if cut is None or cut.atom != value.number:
                        continue
                    if cut not in self.cuts:
                        name = self.cuts[cut] = self.given.of(("cut", len(self.cuts)), f"q{len(self.cuts)}")
                        index = self.index(place, dim, 0)
                        self.put(f"const int64_t {name} = {' + '.join(axis_text(a, index) for a in cut.axes)};")
                    self.element(self.pointer_at(place.relayout, piece.map, place.site.number), self.cuts[cut])

    def point_to_elements(self, loop: LiftedLoop) -> None:
        """A pointer to the record that an iteration is about, where it accesses several fields of it, as a source has one:
        with an address worked out anew for each access gcc -O2 makes no vector of neighbouring fields."""
        made_here = {item.value for item in loop.body if isinstance(item, Let | LetLinear | Load | Call)}
        moved_here = {item.variable for item in loop.body if isinstance(item, Assign)}
        deltas: dict[tuple[str, str], set[int]] = {}
        for item in loop.body:
            place = self.plan.places.get(item.uid) if isinstance(item, Load | Store) else None
            if place is None or item.uid in self.context.wrong or place.site.number not in self.sites_written:
                continue
            if place.along or any(term.atom in made_here or term.atom in moved_here for term in place.terms):
                continue
            for piece in place.pieces:
                moved = self.terms_text(place, piece).removeprefix(" + ")
                if moved and not moved.startswith(" -") and not self.split_terms(place, piece):
                    key = (self.pointer_at(place.relayout, piece.map, place.site.number), moved)
                    deltas.setdefault(key, set()).add(self.delta(place, piece))
        for (pointer, moved), found in deltas.items():
            if len(found) > 1:
                self.element(pointer, moved)

    def element(self, pointer: str, cut: str) -> None:
        """A pointer to the element, so that its fields differ in the displacement only."""
        if (pointer, cut) not in self.elements:
            number = len(self.elements)
            name = self.elements[pointer, cut] = self.given.of(("element", number), f"e{number}")
            self.put(f"uint8_t *const {name} = {pointer} + {cut};")

    def delta(self, place: ElementPlace, piece: RunPiece) -> int:
        """Bytes from the pointer to a piece's field to the piece."""
        return self.context.pointers.offsets[place.relayout.structure.id, piece.map.field] + piece.delta

    def new_place(self, access: Access, place: ElementPlace, piece: RunPiece) -> str:
        """The new address of a piece of an access, as a pointer expression. What is constant stands last: fields of a record
        then differ in the displacement only."""
        if access.uid in self.context.wrong:
            return self.wrong_place(place, piece)
        inner = len(place.relayout.structure.dims) - 1
        whole = whole_axes(piece.map)
        text = self.pointer_at(place.relayout, piece.map, place.site.number)
        split = self.split_terms(place, piece)
        if len(split) == 1 and (text, split[0]) in self.elements:
            text, split = self.elements[text, split[0]], []
        text += "".join(f" + {term}" for term in split)
        moved = self.terms_text(place, piece)
        element = self.elements.get((text, moved.removeprefix(" + ")))
        text = element if element is not None and not split else text + moved
        for counter, move in place.along:
            if move:
                text += f" {'+' if move > 0 else '-'} {abs(move)} * {self.text(counter)}"
        text += f" + {self.rest_in_field(place.site)}" if place.site.inside else ""
        constant_ = self.delta(place, piece) + sum(axis.stride * piece.inner for axis in whole if axis.dim == inner)
        return text + (f" + {constant_}" if constant_ > 0 else f" - {-constant_}" if constant_ else "")

    def terms_text(self, place: ElementPlace, piece: RunPiece) -> str:
        """Returns what runs with the loops, in dimensions that are not split: `` + 48 * v13``."""
        text = ""
        for term in place.terms:
            stride = sum(axis.stride * term.digits[axis.dim] for axis in whole_axes(piece.map))
            atom = f"({self.text(term.atom)} >> {term.shift})" if term.shift else self.text(term.atom)
            if stride:
                text += f" {'+' if stride > 0 else '-'} {integer(abs(stride), 'i64')} * {atom}"
        return text

    def wrong_place(self, place: ElementPlace, piece: RunPiece) -> str:
        """The element at the other end of the longest dimension, in bounds."""
        counts = [d.count for d in place.relayout.structure.dims]
        indices = [self.index(place, k, piece.inner if k == len(counts) - 1 else 0) for k in range(len(counts))]
        k = counts.index(max(counts))
        indices[k] = f"({counts[k] - 1} - ({indices[k]} & ~INT64_C(1)))"
        moved = place_text(piece.map, indices, self.delta(place, piece) - piece.map.offset)
        return f"{self.pointer(place.relayout, piece.map)} + {moved}"

    def split_terms(self, place: ElementPlace, piece: RunPiece) -> list[str]:
        """The quotients and remainders of split dimensions times their strides; those that were cut already by name."""
        if self.strip is not None:
            return [self.strip_term(place, axis) for axis in piece.map.axes if axis.part != "whole"]
        inner = len(place.relayout.structure.dims) - 1
        terms: list[str] = []
        for dim in range(inner + 1):
            axes = [a for a in piece.map.axes if a.dim == dim and a.part != "whole" and a.stride]
            cut = _cut(place, piece, dim)
            if axes and cut in self.cuts:
                terms.append(self.cuts[cut])
            elif axes:
                index = self.index(place, dim, piece.inner if dim == inner else 0)
                terms += [axis_text(a, index) for a in axes]
        return terms

    def strip_term(self, place: ElementPlace, axis: Axis) -> str:
        """Inside a strip the quotient belongs to the block, the remainder is the lane; of a longer block it goes on from
        where the strip begins in it."""
        assert self.strip is not None
        number, block, lane = self.strip
        digit, shift = self.digit(place.site.number, axis.dim), axis.block.bit_length() - 1
        begin = f"({digit} + {block} * {number})"
        if axis.part == "mod":
            return f"{axis.stride} * {lane if axis.block == block else f'(({begin} & {axis.block - 1}) + {lane})'}"
        return f"{axis.stride} * {f'(({digit} >> {shift}) + {number})' if axis.block == block else f'({begin} >> {shift})'}"

    def index(self, place: ElementPlace, dim: int, inner: int) -> str:
        """The digit of one dimension."""
        parts = [self.digit(place.site.number, dim)]
        for term in place.terms:
            digit = term.digits[dim]
            atom = f"({self.text(term.atom)} >> {term.shift})" if term.shift else self.text(term.atom)
            if digit:
                parts.append(("+ " if digit > 0 else "- ") + (atom if abs(digit) == 1 else f"{abs(digit)} * {atom}"))
        if inner:
            parts.append(f"+ {inner}")
        return parts[0] if len(parts) == 1 else f"({' '.join(parts)})"


def _cut(place: ElementPlace, piece: RunPiece, dim: int) -> Cut | None:
    """How the index of a split dimension is cut, where a single loaded or computed value makes it up; else None."""
    axes = tuple(a for a in piece.map.axes if a.dim == dim)
    terms = [t for t in place.terms if t.digits[dim]]
    last = len(place.relayout.structure.dims) - 1
    if all(a.part == "whole" for a in axes) or len(terms) != 1 or (dim == last and piece.inner):
        return None
    atom = terms[0].atom
    if not isinstance(atom, Val):
        return None
    return Cut(place.site.number, dim, atom.number, terms[0].digits[dim], terms[0].shift, axes)
