"""Words of the frame that code reaches at fixed places only, as variables.

A frame in which one address is computed at run time (a small array, a local whose address is handed on) stays memory as a
whole when it is lifted, and so does that of a loop, which is its function's. But registers that the compiler saved there
are no data of the program: written in another layout, it would save others, and a compiler that finds them in memory saves
its own beside them. Where the traced call reached a word by its fixed accesses alone it becomes a variable, or, where
nothing writes it, a value that is loaded at the entry. So do words that share bytes, one after the other
(``docs/decisions/0154``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

import networkx as nx

from layout_advise.mockup.evidence.binding import Access, Key, access_bytes, accesses, key_of
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.evidence.streams import hull, meets
from layout_advise.mockup.ir.effects import Gpr, Ty
from layout_advise.mockup.ir.last_writers import Place, bytes_of, last_writers
from layout_advise.mockup.ir.lifted import (
    Assign,
    Imm,
    Item,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Linear,
    Load,
    Operand,
    Origin,
    RuntimeCall,
    Store,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.ir.linear_forms import signed
from layout_advise.mockup.ir.loop_body import first_free_number
from layout_advise.mockup.ir.substitution import substituted
from layout_advise.mockup.lift.flow import RIP
from layout_advise.mockup.rewrite.handed_frame import handed_from

RSP = Gpr(4)
FRAME: Literal["frame"] = "frame"


@dataclass(frozen=True, slots=True)
class _Word:
    """A place of the frame with the ``accesses`` to it. ``outlives``: it is there before and after; ``is_last``: what stands
    there afterwards it has written."""

    place: Place
    accesses: tuple[Load | Store, ...]
    outlives: bool
    is_last: bool

    @property
    def ty(self) -> Ty:
        """The type of the variable: that of what is stored first, as the code has it."""
        return next((one.ty for one in self.accesses if isinstance(one, Store)), _type_of(self.accesses[0]))

    @property
    def is_written(self) -> bool:
        return any(isinstance(one, Store) for one in self.accesses)


def frame_variables(lifted: Lifted, evidence: Evidence, unseen: Collection[int] = ()) -> Lifted:
    """Returns ``lifted`` with words of the frame as variables.

    Needs: the traced addresses, to show that nothing else reaches these words, in calls that stay calls neither; and where
    such calls are of which the trace does not tell that (``unseen``).
    Gives: values where the frame was loaded; of a loop, and of arguments on the stack, words that it writes are stored at
    the end. The references that are made no more are ``skipped``.
    Keeps: all other statements and their order.
    """
    rsp = next((live.value for live in lifted.live_ins if live.location == RSP and live.half is None), None)
    alone = not evidence.trace.threads and not any(isinstance(item, RuntimeCall) for item in everything(lifted.body))
    words = tuple(_words(lifted, rsp, evidence, handed_from(lifted, rsp, unseen))) if rsp is not None and alone else ()
    if not words:
        return lifted

    def pointers() -> Lifted | None:
        same = lifted.as_pointers
        return frame_variables(same, evidence, unseen) if same is not None else None

    made = _Rewriter(lifted, words).run()
    return replace(made, with_pointers=pointers if lifted.with_pointers is not None else None)


def _words(lifted: Lifted, rsp: Val, evidence: Evidence, least: int | None) -> Iterator[_Word]:
    """The words that can be variables, of those below ``least`` from the stack pointer (None: all)."""
    is_loop = any(out.location == RIP for out in lifted.live_outs)
    found: dict[Place, list[Access]] = {}
    for one in accesses(lifted.body):
        if one.address.terms == ((rsp, 1),):
            found.setdefault((signed(one.address.const), access_bytes(one)), []).append(one)
    starts = {(key_of(one), place[0] - one.part) for place, some in found.items() for one in some}
    elsewhere = {key_of(one) for one in accesses(lifted.body) if one.address.terms != ((rsp, 1),)}
    several = elsewhere | {key for key, number in Counter(key for key, _ in starts).items() if number > 1}
    for places in _together(found):
        if least is not None and max(bytes_of(place).stop for place in places) > least:
            continue
        plain = {
            place: tuple(one for one in found[place] if isinstance(one, Load | Store) and not one.lanes) for place in places
        }
        own = {key_of(one) for place in places for one in found[place]}
        whole = all(len(plain[place]) == len(found[place]) for place in places)
        if whole and not own & several and _is_alone(plain, own, evidence):
            yield from _apart(lifted, plain, is_loop)


def _type_of(access: Access) -> Ty:
    return access.value.ty if isinstance(access, Load) else access.ty


def _together(found: Mapping[Place, Sequence[Access]]) -> Iterator[list[Place]]:
    """The places in groups: those that share bytes, or are parts of what one instruction loads or stores."""
    graph: nx.Graph[Place | int | Key] = nx.Graph()
    for place, some in found.items():
        graph.add_edges_from((place, byte) for byte in bytes_of(place))
        graph.add_edges_from((place, key_of(one)) for one in some)
    for group in nx.connected_components(graph):
        yield [place for place in sorted(found) if place in group]


def _apart(lifted: Lifted, some: Mapping[Place, tuple[Load | Store, ...]], is_loop: bool) -> list[_Word]:
    """The words of places that share bytes, in an order in which those that are there afterwards can be stored; none where a
    load may read what another place wrote, or it is not known which of them wrote last what stands there afterwards."""
    seen = last_writers(lifted.body, {one.uid: place for place, those in some.items() for one in those})
    last, found = set(seen.at_end.values()), []
    for place in sorted(some, key=lambda one: -len(bytes_of(one))):
        outlives = is_loop or bytes_of(place).stop > 0
        found.append(_Word(place, some[place], outlives, place in last))
    never = any(not (word.outlives or word.is_written) for word in found)
    stored = {byte: word.place for word in found if word.outlives and word.is_last for byte in bytes_of(word.place)}
    lost = any(stored[byte] != seen.at_end.get(byte) for byte in stored) or (None in last and any(w.outlives for w in found))
    return [] if seen.mixed or never or lost else found


def _is_alone(some: Mapping[Place, Sequence[Load | Store]], own: Collection[Key], evidence: Evidence) -> bool:
    """Returns whether the traced call reached places by their own references, and by no other one, which no layout moves."""
    streams = evidence.binding.streams
    traced = {(place[0] - one.part, key_of(one)) for place, those in some.items() for one in those if key_of(one) in streams}
    starts = {hull(streams[key])[0] - distance for distance, key in traced}
    if len(starts) != 1 or any(len(set(hull(streams[key]))) > 1 for _, key in traced):
        return False
    if any(evidence.binding.reached_by(key) != ("",) for _, key in traced):
        return False
    (start,) = starts
    ranges = tuple(range(start + place[0], start + bytes_of(place).stop) for place in some)
    begin, end = min(r.start for r in ranges), max(r.stop for r in ranges)
    for key, reference in evidence.binding.reference_of.items():
        if key in own or key not in streams or evidence.binding.pooled(key):
            continue
        first, last = hull(streams[key])
        if first < end and last + reference.bytes > begin and any(meets(streams[key], reference.bytes, ranges)):
            return False
    return True


class _Rewriter:
    """Puts variables in the place of words."""

    def __init__(self, lifted: Lifted, words: Sequence[_Word]) -> None:
        self.lifted, self.words = lifted, words
        self.word_of = {one.uid: word for word in words for one in word.accesses}
        self.numbers = count(first_free_number(lifted))
        self.first = {word: Val(next(self.numbers), word.ty) for word in words}
        """Values at the entry."""
        self.variables = {word: Var(next(self.numbers), word.ty) for word in words}
        self.groups = max((i.group for i in everything(lifted.body) if isinstance(i, Assign)), default=0)

    def run(self) -> Lifted:
        """The whole hotspot."""
        begin: list[Item] = []
        end: list[Item] = []
        known: dict[Operand, Operand] = {}
        for word in self.words:
            begin += [self._loaded(word)] if word.outlives else []
            if not word.is_written:
                same = (one for one in word.accesses if isinstance(one, Load) and one.value.ty == word.ty)
                known |= {one.value: self.first[word] for one in same}
            elif word.outlives:
                begin.append(self._assigned(word, self.first[word]))
                end += [self._stored(word)] if word.is_last else []
        body = substituted(self._items(self.lifted.body), known)
        outs = tuple(replace(out, operand=known.get(out.operand, out.operand)) for out in self.lifted.live_outs)
        gone = sorted({key_of(one) for word in self.words for one in word.accesses})
        skipped = (*self.lifted.skipped, *((pc, operand, FRAME) for pc, operand in gone))
        return replace(self.lifted, body=(*begin, *body, *end), live_outs=outs, skipped=skipped)

    def _items(self, items: Sequence[Item]) -> tuple[Item, ...]:
        found: list[Item] = []
        for item in items:
            word = self.word_of.get(item.uid)
            if isinstance(item, LiftedLoop):
                found.append(replace(item, body=self._items(item.body)))
            elif isinstance(item, Store) and word is not None:
                found += self._given(word, item)
            elif isinstance(item, Load) and word is not None:
                found += [self._copied(item, word)] if word.is_written or item.value.ty != word.ty else []
            else:
                found.append(item)
        return tuple(found)

    def _assigned(self, word: _Word, operand: Operand) -> Assign:
        self.groups += 1
        return Assign(self.variables[word], operand, self.groups)

    def _given(self, word: _Word, store: Store) -> list[Item]:
        """The variable's new value, with the same bits where it has another type."""
        if isinstance(store.stored, Imm):
            return [self._assigned(word, replace(store.stored, ty=word.ty))]
        if store.ty == word.ty:
            return [self._assigned(word, store.stored)]
        value = Val(next(self.numbers), word.ty)
        return [Let(value, "bitcast", (store.stored,), _apart_from_pack(store.origin)), self._assigned(word, value)]

    def _copied(self, load: Load, word: _Word) -> Item:
        """A copy of the variable, or of the value at the entry, where the word was loaded."""
        variable = self.variables[word] if word.is_written else self.first[word]
        if word.ty == load.value.ty == "i64":
            return LetLinear(load.value, Linear(0, ((variable, 1),)), _apart_from_pack(load.origin))
        return Let(load.value, "bitcast", (variable,), _apart_from_pack(load.origin))

    def _loaded(self, word: _Word) -> Load:
        """The word at the entry, which is of no reference."""
        one = word.accesses[0]
        return Load(self.first[word], one.address, _apart_from_pack(one.origin), one.operand, one.part, lanes=(None,))

    def _stored(self, word: _Word) -> Store:
        one = next(one for one in word.accesses if isinstance(one, Store))
        stored = self.variables[word]
        return Store(word.ty, one.address, stored, _apart_from_pack(one.origin), one.operand, one.part, lanes=(None,))


def _apart_from_pack(origin: Origin) -> Origin:
    """The origin of a lane that is no part of its packed instruction any more."""
    return replace(origin, pack=None, lane=0, width=0)
