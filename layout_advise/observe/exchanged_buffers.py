"""Buffers that a program exchanges between calls: what one call reads, the next one writes.

One of them alone cannot be laid out differently. Of the source a call may also use fields that it does not use of the
destination; at the next call, where mock-ups are compared too, these are fields of the other buffer. So where two structures
look alike, one further call is traced before any layout is proposed, unless there is nothing in them to rearrange.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.explore.joint_candidates import (
    can_be_rearranged,
    changing_places,
    taking_turns,
    twins,
    unlike,
)
from layout_advise.observe.case import Case
from layout_advise.observe.observe import Observation, references_of, united
from layout_advise.progress import Progress


def with_further_calls(case: Case, seen: Observation, kinds: Sequence[Observation]) -> Observation:
    """``seen`` with its structures as calls of other ``kinds``, and of other regions, use them too; and as the next calls
    that are compared do, as long as these show that structures take each other's place. Which ones do is then known as
    ``exchanged``."""
    calls = [*kinds]
    known = united(seen, case.beside, calls)
    changed = [changing_places(twins(known.structures), references_of(seen), references_of(one, seen)) for one in kinds]
    turns = tuple(dict.fromkeys(names for found in changed for names in found))
    for call in case.calls_compared[1:]:
        alike = twins(known.structures)
        asked = [g for g in alike if can_be_rearranged(g) and not any({one.id for one in g} <= names for names in turns)]
        if seen.trace.truncated or not (asked or any(map(unlike, alike))):
            break
        now = _observed(case, call)
        if now is None:
            break
        calls.append(now)
        more = united(seen, case.beside, calls)
        found = taking_turns(known.structures, more.structures)
        found += changing_places(asked, references_of(seen), references_of(now, seen))
        if not found or not _as_good(known.structures, more.structures):
            break
        known, turns = more, tuple(dict.fromkeys((*turns, *found)))
    if turns:
        _say(case.space.progress, known, turns)
    return replace(known, exchanged=turns)


def _observed(case: Case, call: int) -> Observation | None:
    """Observes ``call`` in a program started anew; None where it cannot be traced whole."""
    case.space.progress.step(f"stopping the program at call {call}, as structures may take each other's place there")
    try:
        with case.park(call) as program:
            now = case.observe(program, call)
    except LayoutAdviseError:  # whoever has to stop there later will say why that fails
        return None
    return None if now.trace.truncated else now


def _as_good(before: Sequence[Structure], after: Sequence[Structure]) -> bool:
    """Tells whether the further call left the structures what they were, but for their fields: as many elements of one
    size, and nothing that is not known exactly any more."""
    return all(
        (one.element_bytes, one.count, one.inexact) == (other.element_bytes, other.count, other.inexact)
        for one, other in zip(before, after, strict=True)
    )


def _say(progress: Progress, known: Observation, turns: Sequence[frozenset[str]]) -> None:
    for names in turns:
        said = " and ".join(s.name for s in known.structures if s.id in names)
        progress.note(f"{said} take each other's place from call to call: they get one layout, with the fields of both")
