"""The ways to write a term: Unicode ``A_256 ⊗ S_{0,1;4}``, ASCII ``A[256] * S[0,1;4]``, and the paper's LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.layoutalgebra.sets.index_set import IndexSet


@dataclass(frozen=True, slots=True)
class Notation:
    """The signs of one way to write a term; ``array`` and ``leaf`` are patterns of :meth:`str.format`."""

    times: str
    plus: str
    array: str
    leaf: str

    def leaf_text(self, indices: IndexSet, diameter: int) -> str:
        """``A_d`` where all of ``[0, diameter)`` is accessed, else ``S_{I,d}``."""
        if indices.count == diameter:
            return self.array.format(diameter)
        return self.leaf.format(_items(indices, diameter), diameter)

    def sum_text(self, terms: Sequence[tuple[str, bool]], inside: bool) -> str:
        """The ⊕ of ``terms`` (text, whether it is a product), in parentheses where it stands ``inside`` a product."""
        text = self.plus.join(f"({part})" if is_product else part for part, is_product in terms)
        return f"({text})" if inside else text


UNICODE = Notation(" ⊗ ", " ⊕ ", "A_{}", "S_{{{};{}}}")
ASCII = Notation(" * ", " + ", "A[{}]", "S[{};{}]")
LATEX = Notation(r" \otimes ", r" \oplus ", "A_{{{}}}", r"S_{{\{{{}\}};{}}}")


def shorten(text: str, width: int = 120) -> str:
    """``text`` cut at a ⊕ or a comma to about ``width`` characters, with the number of characters left out."""
    if len(text) <= width:
        return text
    cut = max(text.rfind(" ⊕ ", 0, width), text.rfind(",", 0, width), width // 2)
    return f"{text[:cut]} … ({len(text) - cut} more characters)"


def _items(indices: IndexSet, diameter: int) -> str:
    """``0,1`` or ``0:1000:2``; short runs are listed. The stop is a whole step on, or the size where that is less."""
    parts: list[str] = []
    for run in indices.runs:
        if len(run) <= 3 and run.step == 1:
            parts.extend(map(str, run))
        else:
            stop = min(run[-1] + run.step, diameter)
            parts.append(f"{run[0]}:{stop}" + (f":{run.step}" if run.step != 1 else ""))
    return ",".join(parts)
