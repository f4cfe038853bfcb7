"""A candidate as a change of the source: declarations, allocation and accesses, today's against the new ones.

The lines are those of a diff: ``-`` goes, ``+`` comes, a blank stays. They are C, or C++ where a file of C++ allocates, to
read and to paste. How the program allocates is not known: where it is not by ``malloc`` or a vector, its own way stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from math import prod

from layout_advise.layoutalgebra.bridges.declarations import (
    NewArray,
    declare_run,
    element_of,
    identifier,
    new_array,
    runs_of,
    unique,
)
from layout_advise.layoutalgebra.derive.structure import Candidate, Field, Relayout, Structure
from layout_advise.layoutalgebra.explore.plans import LINE
from layout_advise.layoutalgebra.explore.relayout import ALIGN

MOST_ACCESSES = 6
"""Fields whose accesses are written out."""
_CXX = re.compile(r"\.(cc|cpp|cxx|C|c\+\+|hh|hpp|hxx|h\+\+)(:\d+)?$")
_PART = re.compile(r"(?:\[\d+\])+")
_REMARK = re.compile(r"\s*/\*.*?\*/")


def source_change(candidate: Candidate) -> str:
    """The change of the source that ``candidate`` asks for, as the lines of a diff; of a temporary layout what its copies
    need beside the data as it is."""
    if ALIGN in candidate.families:
        return "".join(f"{line}\n" for layout in candidate.relayouts for line in _in_whole_lines(layout.structure))
    lines: list[str] = []
    taken: set[str] = set()
    for layout in candidate.stored:
        own = [one for one in candidate.relayouts if (one.merged or one) == layout]
        for one in own:
            lines += _today(one.structure, keeps=candidate.keeps_cold, stays=candidate.temporary)
        arrays = [new_array(layout, k, unique(_name(candidate, layout, k), taken)) for k in range(len(layout.buffers))]
        heap = any(one.structure.kind in ("heap", "mapped") for one in own)
        vector = any(_in_cxx(one.structure) for one in own)
        lines += [f"+{line}" for array in arrays for line in _declared(array, heap, vector)]
        if layout.chosen is not None:
            lines.append(
                f"+/* of each {layout.chosen.block} neighbours the one that a call uses; further parts hold the others */"
            )
        lines += _accesses(own, layout, arrays)
    return "\n".join(lines) + "\n"


def _in_whole_lines(structure: Structure) -> list[str]:
    """The array as it is, and as one that begins with a cache line."""
    name, counts, field = identifier(structure.name), [dim.count for dim in structure.dims], structure.fields[0]
    rest = "".join(f"[{n}]" for n in counts[1:])
    today = _today(structure, keeps=False, stays=False)
    if structure.kind not in ("heap", "mapped"):
        keyword = "alignas" if _in_cxx(structure) else "_Alignas"
        return [*today, f"+{keyword}({LINE}) {declare_run(field, f'{name}[{counts[0]}]{rest}', 1)};"]
    pointer = declare_run(field, f"(*{name}){rest}" if rest else f"*{name}", 1)
    size = -(-structure.count * structure.element_bytes // LINE) * LINE
    cast = f"({declare_run(field, f'(*){rest}' if rest else '*', 1)})" if _in_cxx(structure) else ""
    return [*today, f"+{pointer} = {cast}aligned_alloc({LINE}, {size});"]


def _name(candidate: Candidate, layout: Relayout, number: int) -> str:
    """A short name for a new array: ``p_x`` of one field; ``p_blocks``, ``p_hot`` (used fields) or ``p_new`` of records."""
    if sum(m.buffer == number for m in layout.fields) == 1:
        return identifier(layout.buffers[number].name)
    kind = "blocks" if candidate.block is not None else "hot" if candidate.keeps_cold else "new"
    return f"{identifier(layout.structure.name)}_{kind}"


def _today(structure: Structure, *, keeps: bool, stays: bool) -> list[str]:
    """The declaration and the allocation as they are. ``keeps``: the unused fields keep their place; ``stays``: all do."""
    rest = keeps and bool(structure.cold)
    whole = " " if stays or rest else "-"
    name = identifier(structure.name)
    site = f"  /* {structure.alloc_site} */" if structure.alloc_site else ""
    only = structure.fields[0] if len(structure.fields) == 1 and not structure.cold else None
    if only is not None and only.bytes == structure.element_bytes:
        return [f"{whole}{_array(declare_run(only, '{}', 1), name, structure)}{site}"]
    if structure.via is None and (bounds := _bounds(structure)):
        return [f"{whole}{_array(declare_run(structure.fields[0], '{}', 1), name, structure, bounds)}{site}"]
    tag = identifier((structure.type or f"{structure.name}_element").removeprefix("struct "))
    marks = ("-", " ") if rest and not stays else (whole, whole)
    used, cold = (
        [(*run, mark) for run in runs_of(f)] for f, mark in zip((structure.fields, structure.cold), marks, strict=True)
    )
    lines = [f"{whole}struct {tag} {{  /* {structure.element_bytes} bytes */"]
    lines += _members(sorted((*used, *cold), key=lambda member: member[0].offset))
    return [*lines, f"{whole}}};", f"{whole}{_array(f'struct {tag} {{}}', name, structure)}{site}"]


def _members(members: Sequence[tuple[Field, str, int, str]]) -> list[str]:
    """Members that follow each other, of one type and with one mark, on one line."""
    split = [(mark, *declare_run(f, identifier(name), count).rsplit(" ", 1)) for f, name, count, mark in members]
    groups = [(key, [name for *_, name in group]) for key, group in groupby(split, key=lambda one: (one[0], one[1]))]
    return [f"{mark}    {kind} {', '.join(names)};" for (mark, kind), names in groups]


def _bounds(structure: Structure) -> tuple[int, ...]:
    """The bounds of an element that is an array of one type, as its fields are called ``[0][1]``; empty where it is not."""
    fields = (*structure.fields, *structure.cold)
    if len({(f.type, f.bytes) for f in fields}) != 1 or not all(_PART.fullmatch(f.name) for f in fields):
        return ()
    places = [tuple(map(int, re.findall(r"\d+", f.name))) for f in fields]
    bounds = tuple(max(at) + 1 for at in zip(*places, strict=False))
    whole = len({len(at) for at in places}) == 1 and prod(bounds) * fields[0].bytes == structure.element_bytes
    return bounds if whole else ()


def _array(declared: str, name: str, structure: Structure, inner: Sequence[int] = ()) -> str:
    """An array of the structure's elements, each an array of ``inner`` bounds, as it is allocated now; ``declared`` has
    ``{}`` for its name."""
    counts = [*(dim.count for dim in structure.dims), *inner]
    if structure.via is not None:
        return f"{declared.replace('{}', f'*{name}[{structure.count}]')};  /* each element by itself */"
    if structure.blocks:
        return f"{declared.replace('{}', f'*{name}')};  /* in {len(structure.blocks)} blocks */"
    heap = structure.kind in ("heap", "mapped")
    return _allocated(
        lambda text, dims: declared.replace("{}", f"{text}{dims}"), name, counts, heap=heap, vector=_in_cxx(structure)
    )


def _in_cxx(structure: Structure) -> bool:
    """True if a file of C++ allocates it."""
    return _CXX.search(structure.alloc_site or "") is not None


def _allocated(
    declared: Callable[[str, str], str], name: str, counts: Sequence[int], *, heap: bool, vector: bool = False
) -> str:
    """``double *a = malloc(8 * sizeof *a);``, in C++ ``std::vector<double> a(8);``; ``double a[8];`` where it is not on the
    heap."""
    if not heap or not counts:
        return f"{declared(name, ''.join(f'[{n}]' for n in counts))};"
    if vector and len(counts) == 1 and "[" not in declared("", ""):
        return f"std::vector<{declared('', '').strip().removeprefix('struct ')}> {name}({counts[0]});"
    rest = "".join(f"[{n}]" for n in counts[1:])
    pointer = declared(f"(*{name})" if rest else f"*{name}", rest)
    return f"{pointer} = malloc({counts[0]} * sizeof *{name});"


def _declared(array: NewArray, heap: bool, vector: bool) -> Iterable[str]:
    """A new array's record, if it has one, and its allocation."""
    if array.field is None:
        yield f"struct {array.name} {{"
        yield from _together([_REMARK.sub("", line) for line in array.members])
        yield "};"
    yield _allocated(array.declared, array.name, array.dims, heap=heap, vector=vector)


def _together(lines: Sequence[str]) -> Iterable[str]:
    """Members of one type that follow each other on one line."""
    split = [line.removesuffix(";").rsplit(" ", 1) if line.endswith(";") else [line, ""] for line in lines]
    for kind, group in groupby(split, key=lambda one: one[0]):
        names = [name for _, name in group if name]
        yield f"{kind} {', '.join(names)};" if names else kind


def _member(field: Field) -> str:
    """The rest of an access to a field: ``.x``, or ``[0][1]`` of an element that is an array."""
    return field.name if field.name.startswith("[") else f".{field.name}"


def _accesses(own: Sequence[Relayout], layout: Relayout, arrays: Sequence[NewArray]) -> list[str]:
    """How a loop reaches the fields, before and after."""
    pairs = []
    for one in own:
        fields = one.structure.fields
        alone = len(fields) == 1 and fields[0].bytes == one.structure.element_bytes
        for m in one.fields:
            there = next(n for n in layout.fields if (n.buffer, n.offset) == (m.buffer, m.offset))
            array = arrays[m.buffer]
            old = f"{element_of(one.structure)}{'' if alone else _member(fields[m.field])}"
            pairs.append((old, f"{array.name}{array.index}{dict(array.places)[there.field]}"))
    more = f", and {len(pairs) - MOST_ACCESSES} more" if len(pairs) > MOST_ACCESSES else ""
    return [
        f"{mark}{', '.join(pair[k] for pair in pairs[:MOST_ACCESSES])}{more}  /* in the loop */"
        for k, mark in enumerate("-+")
    ]
