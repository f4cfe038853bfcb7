"""Loads and stores of iterations that run side by side: of whole vectors where the slots lie one after another."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.errors import NotVectorisedError
from layout_advise.layoutalgebra.derive.structure import Axis
from layout_advise.mockup.emit.c_text import integer
from layout_advise.mockup.emit.simd.vector_operands import VectorOperands
from layout_advise.mockup.evidence.binding import Access, access_bytes
from layout_advise.mockup.ir.lifted import (
    Load,
    Store,
    Val,
)
from layout_advise.mockup.remap.field_runs import RunPiece
from layout_advise.mockup.remap.indices.index_terms import IndexTerm
from layout_advise.mockup.remap.sites import ElementPlace, Site


class VectorAccesses(VectorOperands):
    """Writes accesses for all slots of a vector."""

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
                digit = self.digit(place.site.number, axis.dim)
                terms.append(f"{axis.stride} * (({digit} + {j}) >> {axis.block.bit_length() - 1})")
            elif axis.part == "mod" and axis.block > self.context.simd.slots:
                digit = self.digit(place.site.number, axis.dim)
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
            for lane in range(self.context.simd.slots):
                self.lane = lane
                result.append(self.pieces(access, place))
            self.lane, self.within_block = 0, False
            return result
        (first,) = self.pieces(access, place)
        self.within_block = False
        if step == access_bytes(access):
            return first, place is not None and self._on_border(place)
        own = self.temporary("p")
        self.put(f"uint8_t *const {own} = (uint8_t *)({first});")
        return [[f"{own} + {integer(step * n % (1 << 64), 'i64')}"] for n in range(self.context.simd.slots)]

    def _on_border(self, place: ElementPlace) -> bool:
        """Returns whether vectors in the new buffers start at multiples of their size."""
        piece, lanes = place.pieces[0], self.context.simd.slots
        parts = [self.delta(place, piece) + piece.map.offset, *(a.stride for a in piece.map.axes if a.part != "mod")]
        parts += [a.stride * lanes for a in piece.map.axes if a.part == "mod"]
        return not place.site.inside and all(part % (piece.bytes * lanes) == 0 for part in parts)

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
