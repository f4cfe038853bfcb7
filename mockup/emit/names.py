"""The C identifiers of one mock-up's kernel: all that is generated is named here, so that no two things share a name."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

RESERVED = frozenset(("context", "call", "given", "before", "lane", "e"))
"""Names that the text of every kernel may use as they are."""


class Names:
    """Hands out identifiers. What is wanted (``d3_0``, a field's name) is changed where something else is called so."""

    def __init__(self, taken: Iterable[str] = RESERVED) -> None:
        self.taken = set(taken)
        self._by_key: dict[Hashable, str] = {}

    def new(self, wanted: str) -> str:
        """Returns ``wanted``, or with a number behind it where that is taken."""
        name, number = wanted, 0
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name

    def of(self, key: Hashable, wanted: str) -> str:
        """Returns the name of ``key``, which it keeps; the first time a :meth:`new` one."""
        if key not in self._by_key:
            self._by_key[key] = self.new(wanted)
        return self._by_key[key]
