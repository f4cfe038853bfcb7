"""The limits of a stage: how much is compared at a time, and how far sums of threads may be apart."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.mockup.timing.policy import limit


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPolicy:
    """How much is compared at a time, and how far sums of threads may be apart."""

    side_by_side: int = limit(4, "mock-ups", "So many are examined at a time, as far as there are cores.", 26)
    most_copied: int = limit(2 << 30, "bytes", "With more memory of the program one after the other is.", 26)
    budget_s: float = limit(60.0, "s", "After so long no further comparison is begun.")
    further_s: float = limit(
        60.0, "s", "Comparing at further calls and at those of other kinds is to take no longer for all layouts ...", 110
    )
    fewest_further: int = limit(6, "builds", "... else it is done for the fastest ones only, and for so many at least.", 110)
    spare_records: int = limit(4096, "accesses", "A check build may record so many beyond twice those of the trace.")
    most_kept: int = limit(256 << 20, "bytes", "More that a batch of calls leaves behind is not kept.", 12)
    most_looks: int = limit(8, "comparisons", "By so many the words are found that the runtime and the loader change.", 25)
    most_sums: int = limit(4096, "numbers", "More numbers than that are no sums of threads.", 24)
    sum_spread: int = limit(8, "ratio", "So many times further than in two runs of the original sums may be apart ...", 24)
    sum_ulp: int = limit(4, "ulp", "... or, where that is more, so many units of the last place for each thread.", 24)
    most_expanded: int = limit(
        1 << 26,
        "accesses",
        "Streams with more are not expanded: as reads they count for all that lies between, as writes for nothing.",
    )
    most_overwritten: int = limit(1 << 29, "bytes", "In larger ranges it is not looked for what a call only writes.")


VERIFY = VerifyPolicy()
