"""The atomic fields of an element: as the source declares them, or as the accesses show them.

An array in the element of which an access reaches many numbers is one field (``int coefficients[576]``): an index picks one
of them, and a layout that took them apart would have to tell which.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from math import gcd

from layout_advise.layoutalgebra.derive.accesses import Access, ExactAccess
from layout_advise.layoutalgebra.derive.declared import Declared, Member
from layout_advise.layoutalgebra.derive.elements import LARGEST_RECORD
from layout_advise.layoutalgebra.derive.structure import Field
from layout_advise.layoutalgebra.sets.footprints import Touched, places_in, touched
from layout_advise.layoutalgebra.sets.nests import Stream

Span = tuple[int, int]
"""First byte within the element, and number of bytes, of an access."""
MOST_APART = 64
"""Of an array of more numbers, as far as one access reaches, these are no fields of their own."""
WORD = 8
CountedSpan = tuple[int, int, Access, int]
"""A :data:`Span` with the access that it is of, and how many accesses that makes."""


def used_fields(
    uses: Sequence[ExactAccess], base: int, element: int, declared: Declared | None
) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """The used and the unused atomic fields of an element."""
    spans = _spans(uses, base, element)
    used = [(start, size) for start, size, _, _ in spans]
    atoms = _declared_atoms(declared, element, used) or _seen_atoms(used, element)
    atoms = _with_words(atoms, used)
    if len(atoms) > MOST_APART:
        atoms = _with_arrays(atoms, [_reach(use, base, element) for use in uses])
    fields: list[Field] = []
    cold: list[Field] = []
    for atom in atoms:
        hits, counted = _counted(atom, spans)
        (fields if hits else cold).append(counted)
    return tuple(fields), tuple(cold)


def _with_words(atoms: Sequence[Field], spans: Sequence[Span]) -> list[Field]:
    """``atoms``, with neighbouring bytes of one array as one field where accesses reach them together, none begins or ends
    among them, and they are words at most: declared as bytes, they are none to the code (a pool's blocks, for any type)."""
    ends = {end for start, size in spans for end in (start, start + size)}
    covered = {byte for start, size in spans if size <= WORD for byte in range(start, start + size)}
    words: list[list[Field]] = []
    for atom in atoms:
        head, _, _ = atom.name.rpartition("[")
        before = words[-1][-1] if words else None
        goes_on = before is not None and before.offset + 1 == atom.offset and {before.bytes, atom.bytes} == {1}
        if goes_on and head and words[-1][-1].name.startswith(f"{head}[") and atom.offset in covered - ends:
            words[-1].append(atom)
        else:
            words.append([atom])
    return [_word(word, atoms) for word in words]


def _word(word: Sequence[Field], atoms: Sequence[Field]) -> Field:
    """Neighbouring bytes as one field of ``atoms``: named as their array where they are all of it."""
    if len(word) == 1:
        return word[0]
    head, _, first = word[0].name.rpartition("[")
    _, _, last = word[-1].name.rpartition("[")
    whole = len(word) == sum(atom.name.startswith(f"{head}[") for atom in atoms)
    return _array(head if whole else f"{head}[{first.removesuffix(']')}..{last}", word)


def _reach(use: ExactAccess, base: int, element: int) -> Span:
    """The bytes of an element from the first to the last place that an access reaches."""
    spans = _covered(use.what, use.access.bytes, base, element)
    start = min(start for start, _ in spans)
    return start, max(start + size for start, size in spans) - start


def _with_arrays(atoms: Sequence[Field], reached: Sequence[Span]) -> list[Field]:
    """``atoms``, with those one field that make up an array of which one access has ``reached`` more than may be apart."""
    found, starts = list(atoms), [atom.offset for atom in atoms]
    for start, size in sorted(set(reached), key=lambda span: -span[1]):
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, start + size - 1) - 1
        if first < 0 or last - first < MOST_APART:
            continue
        head = _array_of(found[first].name, found[last].name)
        if head:  # all of the array, as it is declared
            own = [k for k, atom in enumerate(found) if atom.name.startswith(f"{head}[")]
            first, last = own[0], own[-1]
        elif last - first + 1 == len(found) or any(atom.type is not None for atom in found[first : last + 1]):
            continue  # several members, or records
        found[first : last + 1] = [_array(head or found[first].name, found[first : last + 1])]
        starts[first : last + 1] = [found[first].offset]
    return found


def _array_of(first: str, last: str) -> str:
    """The array that two members are of, ``a[1].b`` for ``a[1].b[0]`` and ``a[1].b[7]``; empty where there is none."""
    parts = zip(first.split("["), last.split("["), strict=False)
    return "[".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], parts))


def _array(name: str, atoms: Sequence[Field]) -> Field:
    """These as one field."""
    start, end = atoms[0].offset, atoms[-1].offset + atoms[-1].bytes
    kinds = {(atom.type, atom.bytes) for atom in atoms}
    kind = atoms[0].type if len(kinds) == 1 else None
    return Field(name, start, end - start, f"{kind}[{len(atoms)}]" if kind else None)


def counted_fields(fields: Sequence[Field], accesses: Sequence[Access], base: int, element: int) -> tuple[Field, ...] | None:
    """``fields`` with the reads and writes of these accesses alone; None where one is not known exactly."""
    known = [(access, touched(access.stream)) for access in accesses]
    uses = [ExactAccess(access, what) for access, what in known if what is not None]
    spans = _spans(uses, base, element)
    return tuple(_counted(field, spans)[1] for field in fields) if len(uses) == len(known) else None


def _spans(uses: Sequence[ExactAccess], base: int, element: int) -> list[CountedSpan]:
    """The pieces of an element that each access touches, and how often."""
    return [
        (start, size, use.access, use.what.count)
        for use in uses
        for start, size in _covered(use.what, use.access.bytes, base, element)
    ]


def _counted(atom: Field, spans: Sequence[CountedSpan]) -> tuple[int, Field]:
    """By how many spans a field is touched, and the field with their reads and writes."""
    hits = [(a, n) for start, size, a, n in spans if start < atom.offset + atom.bytes and atom.offset < start + size]
    once = {id(a): (a, n) for a, n in hits}.values()  # it may reach several places of an array
    reads = sum(n for a, n in once if a.kind in ("read", "both"))
    writes = sum(n for a, n in once if a.kind in ("write", "both"))
    return len(hits), replace(atom, reads=reads, writes=writes)


def covered(stream: Stream, size: int, base: int, element: int) -> tuple[Span, ...] | None:
    """The pieces (offset, bytes) of an element of ``element`` bytes that accesses of ``size`` bytes touch.

    ``base`` is where an element begins. ``None`` where the addresses are not known exactly.
    """
    what = touched(stream)
    return tuple(_covered(what, size, base, element)) if what is not None else None


def _covered(what: Touched, wide: int, base: int, element: int) -> list[Span]:
    grain = what.grain or element
    if grain % element == 0:
        starts: Sequence[int] = ((what.first - base) % element,)
    elif element <= LARGEST_RECORD:
        starts = places_in(what, base, element)
    else:
        first = (what.first - base) % element
        starts = [(first + shift) % element for shift in range(0, element, gcd(grain, element))]
    found: list[Span] = []
    for start in starts:
        if start + wide <= element:
            found.append((start, wide))
            continue
        size = min(wide, element)  # a wide access over several elements
        found.append((start, element - start))
        found.append((0, min(element, size if size == element else start + size - element)))
    return found


def _declared_atoms(declared: Declared | None, element: int, spans: Sequence[Span]) -> list[Field]:
    """The declared atomic members of one element (several declared ones, or a part), or nothing if they do not fit."""
    if declared is None or declared.element_bytes < 1:
        return []
    size = declared.element_bytes
    members = declared.members or (Member("", 0, size, declared.name),)
    if element % size and size % element:
        return []
    atoms = []
    for copy in range(max(1, element // size)):
        prefix = _index_name(declared, copy, element // size) if element > size else ""
        for m in members:
            if m.offset + copy * size + m.bytes <= element:
                name = f"{prefix}.{m.name}" if prefix and m.name else prefix or m.name or "value"
                atoms.append(Field(name, m.offset + copy * size, m.bytes, m.type))
    covered = {b for a in atoms for b in range(a.offset, a.offset + a.bytes)}
    outside = any(b not in covered for start, n in spans for b in range(start, min(start + n, element)))
    return [] if outside else atoms


def _index_name(declared: Declared, number: int, total: int) -> str:
    """``[2][1]`` for copy ``number`` of the innermost declared dimensions that make up ``total`` copies."""
    text, left = "", total
    for count in reversed(declared.dims):
        if left <= 1 or count < 1 or left % count:
            break
        text, number, left = f"[{number % count}]{text}", number // count, left // count
    return text or f"[{number}]"


def _seen_atoms(spans: Sequence[Span], element: int) -> list[Field]:
    """Atoms from the accesses: the narrowest ones first; what only wider ones cover is cut into pieces of 8 or 4."""
    owner: list[int] = [-1] * element
    atoms: list[tuple[int, int]] = []

    def add(start: int, size: int) -> None:
        old = {owner[b] for b in range(start, start + size)} - {-1}
        if old and any(owner[b] == -1 for b in range(start, start + size)):
            wanted = [b for b in range(start, start + size) if owner[b] == -1]
            runs = [b for b in wanted if b - 1 not in wanted]
            for run in runs:
                end = run
                while end in wanted:
                    end += 1
                add(run, end - run)
        elif not old:
            owner[start : start + size] = [len(atoms)] * size
            atoms.append((start, size))

    for start, size in sorted(spans, key=lambda s: (s[1], s[0])):
        end = min(start + size, element)
        while start < end:
            piece = end - start if size <= 8 else next(p for p in (8, 4, 2, 1) if start % p == 0 and start + p <= end)
            add(start, piece)
            start += piece
    return [Field(f"f{start}", start, size) for start, size in sorted(atoms)]
