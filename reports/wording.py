"""Numbers and names as words: shared by the terminal and the HTML report, so that both say the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from layout_advise.reports.model import CandidateReport, HotspotReport, Interval, KindReport, SharedLines, StructureReport

FAMILY_NAMES = {
    "soa": "SoA",
    "aosoa": "AoSoA",
    "split": "split",
    "permute": "permuted",
    "compact": "compact",
    "pad": "padded",
    "reorder": "reordered",
}

FAMILY_NOTES = {
    "SoA": "structure of arrays: one array per field instead of one array of structures",
    "AoSoA×n": "array of structures of arrays: blocks of n elements, in which the n values of a field lie together",
    "split": "the fields are divided among several arrays of structures; | marks where",
    "compact": "only the fields that the hotspot uses are stored there; the others go to an array of their own",
    "by class": "of each few neighbouring elements the one that a call uses is in a first part, the others in further ones",
    "permuted": "the dimensions of the array are in another order",
    "padded": "elements are filled up to a larger size",
    "reordered": "the fields are in another order",
}

VARIANT_NOTES = {
    "plain": "pointers as in the original",
    "restrict": "the new arrays are declared not to overlap (restrict in C), which a compiler can use",
    "simd": "as restrict; besides, the compiler is told which loops' iterations are independent, as the trace shows",
}

CHECK_NOTES = {
    "replayed-batch": "the calls of a batch may find other data than in the program, and take other branches",
    "noise-floor": "the original timed against itself; a speedup within this band counts for nothing",
    "identity": "the hotspot as lifted C with its layout unchanged; 1.0 means that mock-ups run like the compiled code",
    "placement": "what it costs that a short loop straddles cache lines; -falign-loops=32 may gain it without a new layout",
    "in-situ": "whether times in the snapshot hold in the running program",
    "steady-calls": "whether the call measured is like the calls around it",
    "page-faults": "calls with page faults time the kernel, not the layout",
    "trace-complete": "a layout claimed from a part of the accesses could be wrong for the rest",
    "wrong-map": "the comparison of results was shown to fail where it must",
    "calls-verified": "a layout that is right at one call could be wrong at another",
    "deterministic": "otherwise the calls compared would not be the same",
}

ABLATION_NOTE = (
    "speedup over the original; without SIMD: the compiler kept from using vector instructions; with SIMD: the fastest "
    "build, in which loops with independent iterations may be marked as such"
)

MOST_NAMES = 6
LONGEST_TERM = 160

EVIDENCE_NOTES = {
    "verified": "ran on the program's own data and left the same bytes and results as the original",
    "close": "differs from the original by rounding only (reassociated)",
    "replayed": "the hotspot's loads and stores alone, in its order and loops and in words of at most 8 bytes, without the "
    "computation; compared with their replay in the present layout: no speedup of the hotspot is claimed",
    "modelled": "cache lines counted from the trace; no speedup is claimed",
    "rejected": "differed, crashed, hung, or could not be built; not a candidate",
}


def size(count: int) -> str:
    """Bytes with a binary prefix: ``95.4 MiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def stopped_at(hotspot: HotspotReport) -> str:
    """``traced at call 5``, or how many short calls were taken together from which one on, and how much they differ."""
    batch = hotspot.batch
    if batch is None:
        return f"traced at call {number(hotspot.call)}"
    return (
        f"traced {number(batch.calls)} calls together from call {number(hotspot.call)} on, of "
        f"{nanoseconds(batch.ns_low)} to {nanoseconds(batch.ns_high)} (10th to 90th percentile)"
    )


def kind(value: KindReport) -> str:
    """``odd calls: about 150 of 1.2 ms, 46 % of the hotspot's time``; of those not measured why."""
    about = f"{value.text}: about {number(value.calls)} of {nanoseconds(value.ns_in_situ)}, {value.share:.0%} of its time"
    return f"{about}; not measured ({value.reason})" if value.reason else f"{about}; call {value.call} was stopped at"


def kind_speedups(candidate: CandidateReport, hotspot: HotspotReport) -> str:
    """``odd calls 1.80×, even calls 0.97×``; empty where calls are alike or it was not measured."""
    known = [(hotspot.kinds[k.kind].text, k.speedup) for k in candidate.kinds if k.speedup is not None]
    return ", ".join(f"{text} {speedup.median:.2f}×" for text, speedup in known)


def nanoseconds(value: float | None) -> str:
    """A duration with a unit that reads well."""
    if value is None:
        return "–"
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} ns"


def number(value: int) -> str:
    """An integer with thin groups: ``1 250 000``."""
    return f"{value:,}".replace(",", " ")


def interval(value: Interval | None) -> str:
    """``3.61× [3.50, 3.70]``, or a dash."""
    if value is None:
        return "–"
    return f"{value.median:.2f}× [{value.lo:.2f}, {value.hi:.2f}]"


def listing(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """``x, y, z``; long lists are cut: ``x, y and 7 more``."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


def families(candidate: CandidateReport) -> str:
    """What was done to the layout, in short words: ``AoSoA×4, compact``, ``split, compact: vx m | P``,
    ``by class, 1 of 2``."""
    block = f"×{candidate.block}" if candidate.block is not None else ""
    if candidate.classes is not None:
        others = [FAMILY_NAMES.get(name, name) for name in candidate.families if name not in ("split", "compact")]
        return ", ".join([f"by class, 1 of {candidate.classes}", *others])
    words = [FAMILY_NAMES.get(name, name) + (block if name == "aosoa" else "") for name in candidate.families]
    return (", ".join(words) or "as it is") + _groups(candidate)


def _groups(candidate: CandidateReport) -> str:
    """The fields of each array of a split, so that two splits can be told apart."""
    if "split" not in candidate.families:
        return ""
    parts = [" ".join(part.fields) for part in candidate.parts]
    if len(parts) == 1:
        parts.append("rest")
        if len(candidate.parts[0].fields) > MOST_NAMES:
            parts[0] = "used"
    text = " | ".join(parts)
    return f": {text}" if len(text) <= 32 else f": {' | '.join(str(len(part.fields)) for part in candidate.parts)} fields"


def transformation(
    kinds: Sequence[str], block: int | None, groups: Sequence[Sequence[str]], unused: bool, classes: int | None = None
) -> str:
    """A new layout as the end of a sentence that begins with "store it ...": ``as a structure of arrays of the 3 used fields
    (vx, m, P)``. ``groups`` are the fields that stay together, ``unused`` tells that others are left out; ``classes`` as in
    :class:`CandidateReport`."""
    names = [name for group in groups for name in group]
    used = f"the {len(names)} used fields ({listing(names)})" if unused else f"its fields ({listing(names)})"
    if len(names) == 1:
        used = f"the only used field, {names[0]}," if unused else f"its field {names[0]}"
    if classes is not None:
        others = "the other one in a second part" if classes == 2 else f"the others in {classes - 1} further parts"
        return f"by class, the one of each {classes} neighbouring elements that the call uses in a first part, {others}"
    extra = [f"with {word}" for kind, word in _EXTRAS.items() if kind in kinds]
    return " ".join((_shape(kinds, block, groups, used), *extra)).rstrip(",")


_EXTRAS = {"permute": "its dimensions in another order", "pad": "padding", "reorder": "the fields in another order"}


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


def permanence(candidate: CandidateReport, hotspot: HotspotReport) -> str:
    """What the user has to do about the rest of the program."""
    names = listing([f"`{s.name}`" for s in hotspot.structures if s.id in candidate.structures])
    if candidate.temporary:
        return (
            f"The layout is temporary: {names} is converted before the hotspot and back after it, which the gain includes."
        )
    rest = (
        f"The layout is permanent: all code that uses {names} has to change with it, and nothing is converted at run time "
        f"(which other functions use {'it' if len(candidate.structures) == 1 else 'them'} was not looked at)."
    )
    copied = view(candidate)
    return f"{rest} A temporary one: {copied}." if hotspot.verdict.use == "temporary" and copied else rest


def view(candidate: CandidateReport) -> str:
    """What a view around a call copies: ``copy x, y in before the call, P back after it``; empty where it is not known."""
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


def digits(value: float) -> int:
    """Digits after the point that milliseconds need."""
    return 1 if value >= 1 or value == 0 else 3


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout with its variants folded: ``best`` is shown, ``others`` are its further variants."""

    id: str
    best: CandidateReport
    others: tuple[CandidateReport, ...]


def ablation(hotspot: HotspotReport) -> list[tuple[str, str, str]]:
    """Rows (layout, without SIMD, with SIMD) of speedups over the original; empty where there is nothing to tell apart."""
    found = hotspot.ablation
    if found is None:
        return []
    candidate = next((c for c in hotspot.candidates if c.id == found.candidate), None)
    name = f"{base_id(candidate)} {families(candidate)}" if candidate else found.candidate
    return [
        ("as it is", interval(found.neither), interval(found.simd)),
        (name, interval(found.layout), interval(found.both)),
    ]


def base_id(candidate: CandidateReport) -> str:
    """``c3`` of ``c3-restrict``."""
    return candidate.id.removesuffix(f"-{candidate.variant}")


def layouts(hotspot: HotspotReport) -> list[Layout]:
    """The layouts in the order of :func:`ranked`, one entry for all variants of a layout."""
    found: dict[str, list[CandidateReport]] = {}
    for candidate in ranked(hotspot):
        found.setdefault(base_id(candidate), []).append(candidate)
    return [Layout(name, variants[0], tuple(variants[1:])) for name, variants in found.items()]


def place(hotspot: HotspotReport) -> str:
    """``file:line`` of the hotspot without folders, or an empty string."""
    if hotspot.file is None:
        return ""
    name = PurePath(hotspot.file).name
    return name if hotspot.line is None else f"{name}:{hotspot.line}"


def term(text: str) -> str:
    """A layout term, cut where it would fill the page."""
    return text if len(text) <= LONGEST_TERM else f"{text[:LONGEST_TERM]} … (whole in report.json)"


def declaration(text: str) -> str:
    """C declarations without the include that they do not need."""
    text = text.strip()
    return text if re.search(r"\bu?int\d+_t\b", text) else text.removeprefix("#include <stdint.h>").strip()


def shape(structure: StructureReport) -> str:
    """The present layout in words: ``array of structures; the hotspot uses 3 of 10 fields, 24 of 80 bytes``."""
    used = min(sum(f.bytes for f in structure.fields), structure.element_bytes)
    if not structure.fields:
        return "no regular layout was found"
    total = len(structure.fields) + len(structure.cold_fields)
    kind = "array of structures" if structure.count > 1 and total > 1 else "array" if structure.count > 1 else "one block"
    part = structure.used_part
    picked = f"; an index picks {part:.0%} of the elements at this call" if part is not None and part < 1 else ""
    if used == structure.element_bytes:
        return f"{kind}; the hotspot uses all of {'each element' + picked if picked else 'it'}"
    fields = f"{len(structure.fields)} of {total} fields, " if structure.cold_fields else ""
    size_ = f"{number(used)} of {number(structure.element_bytes)} bytes"
    return f"{kind}; the hotspot uses {fields}{size_} of each element{picked}"


def structure_line(structure: StructureReport) -> str:
    """One line about a structure: ``1 300 000 × particle of 80 bytes, 99.2 MiB on the heap, allocated at main.c:47``."""
    where = {"heap": "on the heap", "global": "global", "stack": "on the stack", "mapped": "mapped"}[structure.kind]
    site = f", allocated at {structure.alloc_site}" if structure.alloc_site else ""
    kind = structure.type or "element"
    return f"{number(structure.count)} × {kind} of {structure.element_bytes} bytes, {size(structure.bytes)} {where}{site}"


def shared_lines(shared: SharedLines) -> str:
    """``false sharing: threads 0 and 1 use 3 lines of `sums`, each bytes of its own, and write them (n at omp.c:12)``."""
    what = "1 line" if shared.false == 1 else f"{number(shared.false)} lines"
    who = listing([str(thread) for thread in shared.threads])
    fields = f"{listing(shared.fields)} " if shared.fields else ""
    where = f" ({fields}at {listing(shared.places)})" if shared.places else ""
    return f"false sharing: threads {who} meet in {what} of `{shared.name}`, each at bytes of its own{where}"


def ranked(hotspot: HotspotReport) -> list[CandidateReport]:
    """Candidates, the winner first, then by evidence and by the lower end of their speedup."""
    order = {"verified": 0, "close": 1, "replayed": 2, "modelled": 3, "rejected": 4}

    def key(candidate: CandidateReport) -> tuple[int, int, float, float, str]:
        lines = candidate.traffic.lines_after if candidate.traffic else 1 << 60
        return (
            0 if candidate.id == hotspot.verdict.candidate else 1,
            order[candidate.evidence],
            -(shown.median if (shown := candidate.speedup or candidate.replay) else 0.0),
            lines,
            candidate.id,
        )

    return sorted(hotspot.candidates, key=key)


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


def inverse(value: Interval | None) -> Interval | None:
    """A ratio the other way round: the identity's time ratio as a speedup."""
    if value is None or min(value.lo, value.median, value.hi) <= 0:
        return None
    return Interval(1 / value.median, 1 / value.hi, 1 / value.lo, value.restores)


def dropped(candidate: CandidateReport) -> bool:
    """Measured in a few processes only, because it was clearly slower than another."""
    return candidate.reason is not None and candidate.speedup is not None


def noise(hotspot: HotspotReport) -> str:
    """The noise band, or an empty string."""
    if hotspot.noise is None:
        return ""
    return f"the original against itself: {hotspot.noise.lo:.2f} to {hotspot.noise.hi:.2f}"
