"""Structures that the code reaches through a loaded index: their grid dimensions are one index to the code.

The trace may show that an index array walks a four-dimensional lattice; the code only knows ``index * size``. A layout
that treats those dimensions apart cannot be reached by re-indexing, so they are joined before layouts are proposed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import gcd, prod

from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.other_sizes import is_gapless
from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.mockup.evidence.binding import accesses, bind, key_of
from layout_advise.mockup.ir.lifted import Item, Let, LetLinear, Lifted, LiftedLoop, Load, Val
from layout_advise.mockup.remap.rows_told import tells_rows
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_kinds import blocks_of


def linearise(seen: Observation, lifted: Lifted, shared: Collection[tuple[int, int]] = ()) -> Observation:
    """``seen`` with the dimensions joined that are one index to the lifted code: a loaded one, or one that counts on over
    the rows, unless it is memory (``shared``, as of
    :func:`~layout_advise.observe.other_kinds.blocks_of`) that other regions lay out, too, which may tell its rows.

    Where one reference goes to several fields of an element, the elements are cut into smaller ones in which it has one.
    """
    grains = loaded_coefficients(seen, lifted)
    derived = tuple(_joined(d, grains.get(d.structure.id, 0)) for d in seen.derived)
    return _in_one_row(replace(seen, derived=derived, indexed=frozenset(grains)), lifted, shared)


def _in_one_row(seen: Observation, lifted: Lifted, shared: Collection[tuple[int, int]]) -> Observation:
    """``seen`` with the dimensions of grids joined whose accesses do not all tell in which row they are: a counter that goes
    on over the rows of a matrix that lies in one piece."""
    binding = bind(lifted, seen.trace, seen.structures)

    def joined(derived: Derived) -> Derived:
        grid = derived.structure
        apart = not _is_grid(grid) or not blocks_of([grid]).isdisjoint(shared) or tells_rows(grid, lifted, binding)
        return derived if apart else _with_joined(derived, len(grid.dims))

    return replace(seen, derived=tuple(map(joined, seen.derived)))


def _is_grid(structure: Structure) -> bool:
    return len(structure.dims) > 1 and structure.placed and is_gapless(structure.dims)


def loaded_coefficients(seen: Observation, lifted: Lifted) -> Mapping[str, int]:
    """By structure id: the gcd of the coefficients of values that come from loads, in bytes."""
    loaded = _loaded(lifted)
    binding = bind(lifted, seen.trace, seen.structures)
    grains: dict[str, int] = {}
    for access in accesses(lifted.body):
        picked = [coef for atom, coef in access.address.terms if isinstance(atom, Val) and atom.number in loaded]
        for name in filter(None, binding.reached_by(key_of(access)) if picked else ()):
            grains[name] = gcd(grains.get(name, 0), *picked)
    return grains


def _loaded(lifted: Lifted) -> set[int]:
    """Values that were loaded inside a loop, or computed from such ones."""
    found: set[int] = set()
    for item, inside in _items(lifted.body, inside=False):
        if isinstance(item, Load):
            if inside:
                found.add(item.value.number)
        elif isinstance(item, Let | LetLinear):
            used = item.args if isinstance(item, Let) else tuple(atom for atom, _ in item.linear.terms)
            if any(isinstance(a, Val) and a.number in found for a in used):
                found.add(item.value.number)
    return found


def _items(items: Sequence[Item], *, inside: bool) -> Iterator[tuple[Item, bool]]:
    for item in items:
        yield item, inside
        if isinstance(item, LiftedLoop):
            yield from _items(item.body, inside=True)


def _joined(derived: Derived, grain: int) -> Derived:
    if derived.one_field_each is not None:
        derived = replace(derived.one_field_each, term=derived.term, unit_bytes=derived.unit_bytes)
    structure = derived.structure
    outer = [k for k, dim in enumerate(structure.dims) if grain and dim.stride % grain == 0]
    if len(outer) < 2 or outer != list(range(len(outer))) or not is_gapless(structure.dims[: len(outer)]):
        return derived
    return _with_joined(derived, len(outer))


def _with_joined(derived: Derived, outer: int) -> Derived:
    """The ``outer`` first dimensions, which lie in one piece, as one."""
    structure = derived.structure
    count = prod(dim.count for dim in structure.dims[:outer])
    dims = (Dim(count, structure.dims[outer - 1].stride), *structure.dims[outer:])
    return replace(derived, structure=replace(structure, dims=dims), fastest=max(derived.fastest - outer + 1, 0))
