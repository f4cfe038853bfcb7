"""A plain array whose dimensions stand in another order, recognised as a layout that was tried in the run before.

An array has no members with names: its cells are told by numbers (``[0][1]``). Of the layout it is known in which order the
dimensions of each part lie; of the new array in which order its own do. Dimensions of one length are taken in their old
order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from layout_advise.reports.model.candidate import CandidateReport, PartReport
from layout_advise.reports.model.structure import StructureReport

CELL = re.compile(r"(?:\[\d+\])+")
"""The name of a cell in an innermost row that is taken as an element; an array of numbers has ``value``."""
OWN_ARRAY = "the array of its field"
Label = tuple[str, int]
"""A dimension of the array before: one of its elements (``outer``) or of the cells of an element (``cell``), by number."""


@dataclass(frozen=True, slots=True)
class DimensionOrder:
    """How ``cells`` of elements lie in one array: its dimensions outermost first, ``cell`` for their own."""

    cells: tuple[str, ...]
    dimensions: tuple[str, ...]


def reordered(
    candidate: CandidateReport, before: Sequence[StructureReport], now: Sequence[StructureReport]
) -> tuple[str, ...] | None:
    """The cells that the candidate leaves out and that lie between the others, if its arrays have its order of dimensions
    now; None where they do not."""
    rest: list[str] = []
    by_id = {one.id: one for one in before}
    concerned = list(dict.fromkeys(part.structure for part in candidate.parts))
    for name in concerned:
        parts = [part for part in candidate.parts if part.structure == name]
        wanted = [_orders(part) for part in parts]
        if name not in by_id or any(one is None for one in wanted):
            return None
        of = by_id[name]
        new = [one for one in now if one.name == of.name and _cells(one) is not None]
        if len(new) != 1 or (between := _same([o for one in wanted for o in one or ()], of, new[0])) is None:
            return None
        rest += between
    return tuple(rest) if concerned else None


def _same(wanted: Sequence[DimensionOrder], before: StructureReport, now: StructureReport) -> list[str] | None:
    """The cells that lie between those of ``wanted``; None where the array is laid out in another way."""
    cells, new_cells = _cells(before), _cells(now)
    outer = tuple(count for count in before.dimensions if count > 1)
    if cells is None or new_cells is None or not before.dimensions or not now.dimensions:
        return None
    old: list[tuple[Label, int]] = [(("outer", k), count) for k, count in enumerate(outer)]
    old += [(("cell", k), count) for k, count in enumerate(cells)]
    order = _order(old, [count for count in (*now.dimensions, *new_cells) if count > 1])
    if order is None or order == [label for label, count in old if count > 1]:
        return None
    here = _groups(order, cells)
    rest: list[str] = []
    for one in wanted:
        found = [group for group in here if set(one.cells) <= set(group.cells)]
        if not found or found[0].dimensions != one.dimensions:
            return None
        if [cell for cell in found[0].cells if cell in one.cells] != list(one.cells):
            return None
        left = [cell for cell in found[0].cells if cell not in one.cells]
        if left and one.dimensions[-1:] == ("cell",):
            return None  # unused cells beside each of those that are used: the layout before
        rest += left
    return rest


def _order(old: Sequence[tuple[Label, int]], lengths: Sequence[int]) -> list[Label] | None:
    """The old dimensions in the order of the new ones' lengths; None where these are others."""
    left = [(label, count) for label, count in old if count > 1]
    found = []
    for length in lengths:
        fitting = next((one for one in left if one[1] == length), None)
        if fitting is None:
            return None
        left.remove(fitting)
        found.append(fitting[0])
    return found if not left else None


def _groups(order: Sequence[Label], cells: Sequence[int]) -> list[DimensionOrder]:
    """The arrays that the cells make up: those whose numbers differ only in dimensions within that of an element lie
    together."""
    first = next((k for k, (kind, _) in enumerate(order) if kind == "outer"), len(order))
    apart = [number for _, number in order[:first]]
    together = [number for kind, number in order[first:] if kind == "cell"]
    shown: list[str] = []
    for kind, number in order[first:]:
        name = f"outer {number}" if kind == "outer" else "cell"
        if shown[-1:] != [name]:
            shown.append(name)
    numbers = list(product(*(range(length) for length in cells)))
    groups: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for cell in sorted(numbers, key=lambda cell: [cell[k] for k in together]):
        groups.setdefault(tuple(cell[k] for k in apart), []).append(cell)
    return [DimensionOrder(tuple(_name(cell) for cell in group), tuple(shown)) for group in groups.values()]


def _name(cell: Sequence[int]) -> str:
    return "".join(f"[{number}]" for number in cell) or "value"


def _cells(structure: StructureReport) -> tuple[int, ...] | None:
    """The lengths of an element's own dimensions; empty for an array of numbers, None for a record."""
    names = [field.name for field in (*structure.fields, *structure.cold_fields)]
    if names == ["value"]:
        return ()
    if not names or not all(CELL.fullmatch(name) for name in names):
        return None
    numbers = [tuple(int(part) for part in re.findall(r"\d+", name)) for name in names]
    if len({len(one) for one in numbers}) > 1:
        return None
    lengths = tuple(max(one[k] for one in numbers) + 1 for k in range(len(numbers[0])))
    return lengths if prod(lengths) == len(set(numbers)) else None


def _orders(part: PartReport) -> list[DimensionOrder] | None:
    """The order of the dimensions that a part's map has: ``byte = 32032*i + 8008*f + 8*j of p; f: ...; i < 1001; j < 1001``;
    None where it has blocks."""
    found = re.match(r"byte = (?P<sum>.*?) of (?P<where>the array of its field|\w+)(?P<legend>;.*|$)", part.index_map)
    if found is None:
        return None
    letters = {name: f"outer {k}" for k, name in enumerate(re.findall(r"; (\w+) < \d+", found["legend"]))}
    steps: list[tuple[int, str]] = []
    for term in found["sum"].split(" + "):
        one = re.fullmatch(r"(?:(\d+)\*)?([a-z])", term)
        if one is None or one[2] not in {*letters, "f"}:
            return None
        steps.append((int(one[1] or 1), letters.get(one[2], "cell")))
    dimensions = tuple(name for _, name in sorted(steps, key=lambda step: -step[0]))
    if found["where"] == OWN_ARRAY or len(part.fields) == 1:
        return [DimensionOrder((cell,), dimensions) for cell in part.fields]
    return [DimensionOrder(part.fields, dimensions)]
