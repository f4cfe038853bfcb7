"""References that reach a structure and other memory in turn: the old addresses that such an access is tested for.

A program that has one type for both, or one piece of code, needs the test in the new layout too; where its types tell them
apart it does not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.mockup.evidence.binding import Binding, Key
from layout_advise.mockup.evidence.untaken_accesses import residues_of, unseen
from layout_advise.mockup.ir.lifted import Item

Placed = Mapping[Key, tuple[str, int]]
"""By reference that was not traced: the structure and where in its elements part 0 of the access begins."""


def tested_names(binding: Binding, moved: Collection[str]) -> dict[Key, str]:
    """The references that reach one of the structures ``moved`` and other memory, with that structure. Raises RemapError
    where one reaches several of them."""
    found: dict[Key, str] = {}
    for key, parts in binding.shared.items():
        names = [name for name in parts if name in moved]
        if len(names) > 1:
            raise RemapError(
                f"the reference at {key[0]:#x}", f"it touches {' and '.join(names)} in turn, and both are re-laid"
            )
        if names:
            found[key] = names[0]
    return found


def untaken_places(
    body: Sequence[Item], structures: Sequence[Structure], binding: Binding, tested: Mapping[Key, str]
) -> tuple[Placed, Placed]:
    """The accesses that the traced call did not come to and that go to the same elements as others: as those that go to
    their structure alone, and as the ``tested`` ones."""
    parts = binding.streams | {key: binding.stream_in(key, name) for key, name in tested.items()}
    among = residues_of(unseen(body, structures, tested, parts), structures)
    alone = residues_of(unseen(body, structures, binding.structure_of, binding.streams), structures)
    return {key: place for key, place in alone.items() if key not in among}, among
