"""Words of the frame that code reaches at fixed places only, as variables.

A frame in which one address is computed at run time (a small array, a local whose address is handed on) stays memory as a
whole when it is lifted, and so does that of a loop, which is its function's. But registers that the compiler saved there
are no data of the program: written in another layout, it would save others, and a compiler that finds them in memory saves
its own beside them. Where the traced call reached a word by its fixed accesses alone it becomes a variable, or, where
nothing writes it, a value that is loaded at the entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from layout_advise.mockup.evidence.binding import Access, access_bytes, accesses, key_of
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.evidence.streams import hull
from layout_advise.mockup.ir.effects import Gpr, Ty
from layout_advise.mockup.ir.lifted import (
    Assign,
    Item,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Linear,
    Load,
    Operand,
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
    """A place of the frame: the ``accesses`` to it, all of the type ``ty``. ``outlives``: it is there before and after."""

    const: int
    ty: Ty
    accesses: tuple[Load | Store, ...]
    outlives: bool

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
    words = tuple(_words(lifted, rsp, evidence)) if rsp is not None and alone else ()
    if rsp is not None and words and (least := handed_from(lifted, rsp, unseen)) is not None:
        words = tuple(word for word in words if word.const < least)
    if rsp is None or not words:
        return lifted

    def pointers() -> Lifted | None:
        same = lifted.as_pointers
        return frame_variables(same, evidence, unseen) if same is not None else None

    made = _Rewriter(lifted, words).run()
    return replace(made, with_pointers=pointers if lifted.with_pointers is not None else None)


def _words(lifted: Lifted, rsp: Val, evidence: Evidence) -> Iterator[_Word]:
    """The words that can be variables."""
    is_loop = any(out.location == RIP for out in lifted.live_outs)
    found: dict[int, list[Access]] = {}
    for one in accesses(lifted.body):
        if one.address.terms == ((rsp, 1),):
            found.setdefault(signed(one.address.const), []).append(one)
    ends = {const: max(map(access_bytes, some)) for const, some in found.items()}
    keys = {(key_of(one), const) for const, some in found.items() for one in some}
    elsewhere = {key_of(one) for one in accesses(lifted.body) if one.address.terms != ((rsp, 1),)}
    several = elsewhere | {key for key, const in keys for other in found if (key, other) in keys and other != const}
    for const, some in found.items():
        plain = [one for one in some if isinstance(one, Load | Store) and not one.lanes and one.origin.pack is None]
        types = {one.value.ty if isinstance(one, Load) else one.ty for one in plain}
        apart = all(at + ends[at] <= const or const + ends[const] <= at for at in found if at != const)
        own = {key_of(one) for one in some}
        if len(plain) < len(some) or len(types) > 1 or not apart or own & several:
            continue
        word = _Word(const, types.pop(), tuple(plain), is_loop or const + ends[const] > 0)
        if (word.outlives or word.is_written) and _is_alone(own, ends[const], evidence):
            yield word


def _is_alone(own: set[tuple[int, int]], size: int, evidence: Evidence) -> bool:
    """Returns whether the traced call reached one place by these references, and by no other one, which no layout moves."""
    streams = evidence.binding.streams
    hulls = {hull(streams[key]) for key in own if key in streams}
    if len(hulls) != 1 or any(evidence.binding.reached_by(key) != ("",) and key in streams for key in own):
        return False
    ((low, high),) = hulls
    if low != high:
        return False
    for key, reference in evidence.binding.reference_of.items():
        if key in own or key not in streams or evidence.binding.pooled(key):
            continue
        first, last = hull(streams[key])
        if first < low + size and last + reference.bytes > low:
            return False
    return True


class _Rewriter:
    """Puts variables in the place of words."""

    def __init__(self, lifted: Lifted, words: Sequence[_Word]) -> None:
        self.lifted, self.words = lifted, words
        self.word_of = {one.uid: word for word in words for one in word.accesses}
        number = first_free_number(lifted)
        self.first = {word: Val(number + 2 * k, word.ty) for k, word in enumerate(words)}
        """Values at the entry."""
        self.variables = {word: Var(number + 2 * k + 1, word.ty) for k, word in enumerate(words)}
        self.groups = max((i.group for i in everything(lifted.body) if isinstance(i, Assign)), default=0)

    def run(self) -> Lifted:
        """The whole hotspot."""
        begin: list[Item] = []
        end: list[Item] = []
        known: dict[Operand, Operand] = {}
        for word in self.words:
            begin += [self._loaded(word)] if word.outlives else []
            if not word.is_written:
                known |= {one.value: self.first[word] for one in word.accesses if isinstance(one, Load)}
            elif word.outlives:
                begin.append(self._assigned(word, self.first[word]))
                end.append(self._stored(word))
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
                found.append(self._assigned(word, item.stored))
            elif isinstance(item, Load) and word is not None:
                found += [self._copied(item, word)] if word.is_written else []
            else:
                found.append(item)
        return tuple(found)

    def _assigned(self, word: _Word, operand: Operand) -> Assign:
        self.groups += 1
        return Assign(self.variables[word], operand, self.groups)

    def _copied(self, load: Load, word: _Word) -> Item:
        """A copy of the variable, where the word was loaded."""
        variable = self.variables[word]
        if word.ty == "i64":
            return LetLinear(load.value, Linear(0, ((variable, 1),)), load.origin)
        return Let(load.value, "bitcast", (variable,), load.origin)

    def _loaded(self, word: _Word) -> Load:
        """The word at the entry, which is of no reference."""
        one = word.accesses[0]
        return Load(self.first[word], one.address, one.origin, one.operand, one.part, lanes=(None,))

    def _stored(self, word: _Word) -> Store:
        one = next(one for one in word.accesses if isinstance(one, Store))
        stored = self.variables[word]
        return Store(word.ty, one.address, stored, one.origin, one.operand, one.part, lanes=(None,))
