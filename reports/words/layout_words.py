"""A new layout in words: what was done, what it stores where, what it costs and saves."""

from __future__ import annotations

import re
from collections.abc import Sequence

from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.words.glossary import FAMILY_NAMES
from layout_advise.reports.words.quantities import MOST_NAMES, digits, listing, number

LONGEST_TERM, CUT_TERM = 160, 60


def families(candidate: CandidateReport) -> str:
    """The changes to the layout in short words: ``AoSoA×4, compact``, ``split, compact: vx m | P``,
    ``by class, 1 of 2``."""
    groups = candidate.arrays or [part.fields for part in candidate.parts]
    return short(candidate.families, candidate.block, groups, candidate.classes, candidate.blocks)


def short(
    kinds: Sequence[str],
    block: int | None,
    groups: Sequence[Sequence[str]],
    classes: int | None = None,
    lengths: Sequence[int] = (),
) -> str:
    """The same of what :func:`transformation` takes; of blocks of several lengths ``AoSoA×128/16``."""
    blocks = f"×{_lengths(block, lengths)}" if block is not None else ""
    if classes is not None:
        others = [FAMILY_NAMES.get(name, name) for name in kinds if name not in ("split", "compact")]
        return ", ".join([f"by class, 1 of {classes}", *others])
    words = [FAMILY_NAMES.get(name, name) + (blocks if name == "aosoa" else "") for name in kinds]
    if "merge" in kinds:
        return ", ".join(words) + _merged(groups)
    return (", ".join(words) or "as it is") + (_groups(groups) if "split" in kinds else "")


def _lengths(block: int | None, lengths: Sequence[int]) -> str:
    return "/".join(map(str, dict.fromkeys(length for length in lengths if length))) or str(block)


def _merged(groups: Sequence[Sequence[str]]) -> str:
    """The arrays that each new one is made of: ``: a, b``, ``: 9 | 9 | 9 arrays``."""
    text = " | ".join(", ".join(group) for group in groups)
    return f": {text}" if len(text) <= 32 else f": {' | '.join(str(len(group)) for group in groups)} arrays"


def _groups(groups: Sequence[Sequence[str]]) -> str:
    """The fields of each array of a split, so that two splits can be told apart."""
    parts = [" ".join(group) for group in groups]
    if len(parts) == 1:
        parts = [parts[0] if len(groups[0]) <= MOST_NAMES and len(parts[0]) <= 24 else "used", "rest"]
    text = " | ".join(parts)
    return f": {text}" if len(text) <= 32 else f": {' | '.join(str(len(group)) for group in groups)} fields"


def transformation(
    kinds: Sequence[str],
    block: int | None,
    groups: Sequence[Sequence[str]],
    unused: bool,
    classes: int | None = None,
    lengths: Sequence[int] = (),
) -> str:
    """A new layout as the end of a sentence that begins with "store it ...": ``as a structure of arrays of the 3 used fields
    (vx, m, P)``. ``groups`` are the fields that stay together, ``unused`` tells that others are left out; ``classes`` as in
    :class:`CandidateReport`; ``lengths`` of the blocks of each group, where these are several."""
    names = [name for group in groups for name in group]
    used = f"the {len(names)} used fields ({listing(names)})" if unused else f"its fields ({listing(names)})"
    if len(names) == 1:
        used = f"the only used field, {names[0]}," if unused else f"its field {names[0]}"
    if classes is not None:
        others = "the other one in a second part" if classes == 2 else f"the others in {classes - 1} further parts"
        inner = "".join(f", each part {text}" for kind, text in _OF_A_CLASS.items() if kind in kinds)
        return (
            f"by class, the one of each {classes} neighbouring elements that the call uses in a first part, {others}{inner}"
        )
    if "merge" in kinds:
        shape = f"blocks of {block} structures (AoSoA)" if "aosoa" in kinds else "structures"
        return f"together, as an array of {shape} with one element of each{', with padding' if 'pad' in kinds else ''}"
    if list(kinds) == ["align"]:
        return "as it is, in a block that begins with a cache line"
    if list(kinds) == ["permute"]:  # most often a matrix of numbers, which is no array of structures
        return f"with {_EXTRAS['permute']}"
    extra = [f"with {word}" for kind, word in _EXTRAS.items() if kind in kinds]
    shape = _in_blocks(groups, lengths) if any(lengths) else _shape(kinds, block, groups, used)
    return " ".join((shape, *extra)).rstrip(",")


def brief(candidate: CandidateReport, room: int) -> str:
    """The change in few words, for a sentence: ``as SoA of vx, m, P``; names of fields only as far as ``room`` words take
    them."""
    kinds, groups = candidate.families, candidate.arrays or [part.fields for part in candidate.parts]
    names = list(dict.fromkeys(name for group in groups for name in group))
    if candidate.classes is not None:
        return f"by class, the used one of each {candidate.classes} apart"
    head, of = _head(kinds, _lengths(candidate.block, candidate.blocks), len(groups))
    extra = "".join(f", {word}" for kind, word in _BRIEF_EXTRAS.items() if kind in kinds and kind not in head)
    if not of:
        return f"{head}{extra}"
    listed = " | ".join(", ".join(group) for group in groups) if "split" in kinds and len(groups) > 1 else ", ".join(names)
    if head == "in two parts":
        listed = f"{listed} | the rest"
    if len(f"{head}{of}{listed}{extra}".split()) > max(room, 5):
        listed = f"{len(names)} fields | the rest" if head == "in two parts" else f"{len(names)} fields"
    return f"{head}{of}{listed}{extra}"


def _head(kinds: Sequence[str], block: str, groups: int) -> tuple[str, str]:
    """The main family, and the word between it and the fields; no such word where these say nothing."""
    if "merge" in kinds:
        return ("together, in blocks (AoSoA)" if "aosoa" in kinds else "together, as one array of structures"), ""
    if "aosoa" in kinds:
        return f"as AoSoA×{block}", " of "
    if "split" in kinds and groups > 1:
        return f"as {groups} arrays", ": "
    if "soa" in kinds:
        return "as SoA", " of "
    if "compact" in kinds:
        return "in two parts", ": "
    if "align" in kinds:
        return "from the start of a cache line on", ""
    if "permute" in kinds:
        return "with its dimensions in another order", ""
    return next((f"with {word}" for kind, word in _BRIEF_EXTRAS.items() if kind in kinds), "as it is"), ""


_BRIEF_EXTRAS = {
    "pad": "padded elements",
    "reorder": "reordered fields",
    "complex": "fields in pairs",
    "gather": "gathered objects",
}

_OF_A_CLASS = {"soa": "as a structure of arrays", "aosoa": "in blocks (AoSoA)"}
_EXTRAS = {
    "permute": "its dimensions in another order",
    "pad": "padding",
    "reorder": "the fields in another order",
    "complex": "its fields in pairs, as of complex numbers",
}


def _shape(kinds: Sequence[str], block: int | None, groups: Sequence[Sequence[str]], used: str) -> str:
    """The main family of a layout; the others are added to it."""
    if "aosoa" in kinds:
        return f"as an array of blocks of {block} elements (AoSoA) of {used}"
    if "split" in kinds and len(groups) > 1:
        arrays = ", ".join(f"({listing(group)})" for group in groups)
        inner = "structures of arrays" if "soa" in kinds else "arrays of structures"
        return f"as {len(groups)} {inner}: {arrays},"
    if "soa" in kinds:
        return f"as a structure of arrays of {used}"
    if "split" in kinds or "compact" in kinds:
        return f"as an array of {used} and the rest elsewhere," if "split" in kinds else f"as an array of {used}"
    return "as an array of structures"


def _in_blocks(groups: Sequence[Sequence[str]], lengths: Sequence[int]) -> str:
    """``as 3 arrays, in blocks (AoSoA): (x, y) of 128 elements, (z, m) of 16 elements, (id) in none,``."""
    each = [
        f"({listing(group)}) {f'of {length} elements' if length else 'in none'}"
        for group, length in zip(groups, lengths, strict=True)
    ]
    return f"as {len(groups)} arrays, in blocks (AoSoA): {', '.join(each)},"


def view(candidate: CandidateReport) -> str:
    """The copies of a view around a call: ``copy x, y in before the call, P back after it``; empty where it is not known."""
    costs = candidate.conversion
    if costs is None or not (costs.copied_in or costs.copied_out):
        return ""
    back = f"{listing(costs.copied_out)} back after it" if costs.copied_out else "nothing back"
    inward = f"copy {listing(costs.copied_in)} in before the call" if costs.copied_in else "copy nothing in"
    return f"{inward}, {back}"


def conversion(candidate: CandidateReport) -> str:
    """``3.1 / 0.0 ms, pays from 4 calls on``, or a dash."""
    costs = candidate.conversion
    if costs is None:
        return "–"
    spent = f"{costs.in_ms:.{digits(costs.in_ms)}f} / {costs.out_ms:.{digits(costs.out_ms)}f} ms"
    return f"{spent}, pays from {number(costs.break_even_calls)} on" if costs.break_even_calls else f"{spent}, never pays"


def traffic(candidate: CandidateReport) -> str:
    """Cache lines after, with the change: ``487 500 (−70 %)``."""
    if candidate.traffic is None:
        return "–"
    before, after = candidate.traffic.lines_before, candidate.traffic.lines_after
    if not before:
        return number(after)
    change = round((after / before - 1) * 100)
    sign = "−" if change < 0 else "+" if change > 0 else "±"
    return f"{number(after)} ({sign}{abs(change)} %)"


def term(text: str) -> str:
    """A layout term, cut where it would fill the page: of an irregular set the beginning says enough."""
    return text if len(text) <= LONGEST_TERM else f"{text[:CUT_TERM]} … (irregular; in report.json)"


def declaration(text: str) -> str:
    """C declarations without the include that they do not need."""
    text = text.strip()
    return text if re.search(r"\bu?int\d+_t\b", text) else text.removeprefix("#include <stdint.h>").strip()
