"""The limits of a stage: when a quality check of the experiment counts as passed, and how much source is shown."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.mockup.timing.policy import limit


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPolicy:
    """When a quality check of the experiment counts as passed, and how much of the source the report holds."""

    identity_lo: float = limit(0.9, "ratio", "The unchanged mock-up takes at least this part of the original's time ...")
    identity_hi: float = limit(1.1, "ratio", "... and at most so many times it.")
    noise: float = limit(1.05, "ratio", "The original against itself differs by at most this.")
    spread: float = limit(0.15, "part", "Calls around the one stopped at differ by at most this.")
    rejected: float = limit(0.1, "part", "At most so many timed calls are left out for page faults.")
    placement: float = limit(1.05, "ratio", "The unchanged mock-up placed as the original costs at most this.", 8)
    drift: float = limit(
        1.4,
        "ratio",
        "Others who use the machine can slow calls by less than that without the canaries beside these telling.",
    )
    withheld: float = limit(
        0.15,
        "part",
        "At most so much of a speedup is not told, as it does not hold with flushed caches.",
        34,
    )
    told_less: float = limit(0.01, "part", "From so much on that is said.", 34)

    around: int = limit(2, "lines", "Of the source, shown before and after each line that makes accesses.")
    longest_line: int = limit(240, "characters", "Of a line of the source.")
    most_lines: int = limit(600, "lines", "Of a region, instructions without a source included.")
    most_file_bytes: int = limit(4 << 20, "bytes", "Read of one source file.")

    most_modelled: int = limit(16_000_000, "accesses", "Of a call whose cache misses are modelled by line.", 84)
    modelled_accesses: int = limit(50_000, "accesses", "Of a longer call, looked at for that: of so many lines ...", 84)
    modelled_lines: int = limit(500, "lines", "... at least.", 84)


CHECKS = CheckPolicy()
