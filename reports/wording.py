"""Numbers and names as words: shared by the terminal and the HTML report, so that both say the same."""

from __future__ import annotations

from layout_advise.reports.model import CandidateReport, HotspotReport, Interval, StructureReport

FAMILY_NAMES = {
    "soa": "structure of arrays",
    "aosoa": "array of structures of arrays",
    "split": "split",
    "permute": "dimensions permuted",
    "compact": "compacted",
    "pad": "padded",
    "reorder": "fields reordered",
}

EVIDENCE_NOTES = {
    "verified": "ran on the program's own data and left the same bytes and results as the original",
    "close": "differs from the original by rounding only (reassociated)",
    "replayed": "addresses replayed in the new layout without the computation",
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


def families(candidate: CandidateReport) -> str:
    """What was done to the layout, in words."""
    words = [FAMILY_NAMES.get(name, name) for name in candidate.families]
    if candidate.block is not None:
        words = [f"{w} of {candidate.block}" if w == FAMILY_NAMES["aosoa"] else w for w in words]
    return ", ".join(words) or "as it is"


def place(hotspot: HotspotReport) -> str:
    """``file:line`` of the hotspot, or an empty string."""
    if hotspot.file is None:
        return ""
    return hotspot.file if hotspot.line is None else f"{hotspot.file}:{hotspot.line}"


def structure_line(structure: StructureReport) -> str:
    """One line about a structure."""
    site = f" from {structure.alloc_site}" if structure.alloc_site else ""
    kind = f"{structure.type} " if structure.type else ""
    return (
        f"{structure.kind}, {size(structure.bytes)}{site}: {number(structure.count)} × {kind}"
        f"({structure.element_bytes} bytes)"
    )


def ranked(hotspot: HotspotReport) -> list[CandidateReport]:
    """Candidates, the winner first, then by evidence and by the lower end of their speedup."""
    order = {"verified": 0, "close": 1, "replayed": 2, "modelled": 3, "rejected": 4}

    def key(candidate: CandidateReport) -> tuple[int, int, float, float, str]:
        lines = candidate.traffic.lines_after if candidate.traffic else 1 << 60
        return (
            0 if candidate.id == hotspot.verdict.candidate else 1,
            order[candidate.evidence],
            -(candidate.speedup.median if candidate.speedup else 0.0),
            lines,
            candidate.id,
        )

    return sorted(hotspot.candidates, key=key)


def traffic(candidate: CandidateReport) -> str:
    """Cache lines before and after."""
    if candidate.traffic is None:
        return "–"
    return f"{number(candidate.traffic.lines_before)} → {number(candidate.traffic.lines_after)}"
