"""Patterns of layouts, as the paper guides the search: ``* ⊗ A`` for vectors, ``* ⊗ A ⊗ S_2`` for complex numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.explore.plans import Group

_ATOM = re.compile(r"([AS])(?:_(\d+)|_\{(\d+)\}|\[(\d+)\])?")


@dataclass(frozen=True, slots=True)
class Shape:
    """``atoms`` are the last factors of a layout (all of them without ``open``): A an array, S the members of a record.

    ``A_8`` is an array of a multiple of 8, ``S_2`` a record of exactly 2 members; A and S without a number are of any size.
    """

    atoms: tuple[tuple[str, int], ...]
    open: bool

    @classmethod
    def parse(cls, text: str) -> Shape:
        """From ``* ⊗ A_8 ⊗ S_2`` (⊗ or @ between the factors, ``*`` for any factors before them).

        Raises :class:`AlgebraError` that says which factor is not understood.
        """
        words = [word.strip() for word in re.split(r"[⊗@]", text)]
        wild = words[0] == "*"
        atoms = []
        for word in words[1:] if wild else words:
            match = _ATOM.fullmatch(word)
            if match is None:
                column = text.find(word) + 1 if word else len(text)
                hint = "write factors A, A_8, S or S_2 with ⊗ between them, and * first for any others"
                raise AlgebraError(f"not a pattern (column {column})", f"{word!r} in {text!r}", hint)
            size = next((int(g) for g in match.groups()[1:] if g), 0)
            if size == 0 and match.group(0) != match.group(1):
                raise AlgebraError(
                    f"not a pattern (column {text.find(word) + 1})", f"size 0 in {word!r}", "sizes start at 1"
                )
            atoms.append((match.group(1), size))
        return cls(tuple(atoms), wild)

    @property
    def lanes(self) -> int:
        """The greatest size asked of an array."""
        return max((size for kind, size in self.atoms if kind == "A"), default=0)

    @property
    def members(self) -> int:
        """The size asked of a record."""
        return max((size for kind, size in self.atoms if kind == "S"), default=0)

    def matches(self, group: Group, structure: Structure) -> bool:
        """True if the buffer of ``group`` has this shape."""
        factors = [("A", step.extent(structure)) for step in group.outer]
        factors.append(("S", len(group.fields) // group.together))
        factors += [("A", step.extent(structure)) for step in group.inner]
        factors.append(("S", group.together))
        factors = [factor for factor in factors if factor[1] > 1]
        if len(factors) < len(self.atoms) or (not self.open and len(factors) > len(self.atoms)):
            return False
        last = factors[len(factors) - len(self.atoms) :]
        return all(
            kind == want and (size == 0 or (have % size == 0 if kind == "A" else have == size))
            for (kind, have), (want, size) in zip(last, self.atoms, strict=True)
        )
