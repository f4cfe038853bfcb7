"""Words for a layout that was measured in several regions."""

from __future__ import annotations

from layout_advise.reports.model.contract import OverRegions


def sentence(row: OverRegions) -> str:
    """The gain of a layout in each region and in the whole program."""
    cells = [
        f"{one.hotspot} ({one.share:.0%}) {one.speedup.median:.2f} times as fast" if one.speedup is not None
        else f"{one.hotspot} ({one.share:.0%}) was not measured"
        for one in row.regions
    ]  # fmt: skip
    whole = "what the program gains is not known"
    if row.program is not None:
        whole = f"the program {row.program.median:.2f} times ({row.program.lo:.2f} to {row.program.hi:.2f})"
    return f"{row.candidate} ({row.label}) over the regions: {', '.join(cells)}; {whole}."
