"""The limits of a stage: how mock-ups are compiled, and where their code and their data lie in further builds."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.mockup.timing.policy import limit


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPolicy:
    """How mock-ups are compiled, and where their code and their data lie in further builds."""

    budget_s: float = limit(60.0, "s", "After so long no further layout is built ...", 110)
    least_s: float = limit(
        15.0,
        "s",
        "... nor after an equal part of what the run has left before it measures: one for building, one for comparing, one "
        "for each other kind of calls; but so long each may take.",
        110,
    )
    jobs: int = limit(2, "compilers", "So many run at a time.")
    most_checked: int = limit(
        10,
        "pairs",
        "So many pairs of arrays gcc checks for overlaps at run time, and no more, to vectorise a loop.",
        28,
    )
    code_step: int = limit(
        16,
        "bytes",
        "So much further into a cache line each build at another place has its code: compilers align functions to 16.",
        37,
    )
    most_reindexed: int = limit(
        6, "builds", "For so many sets of structures the unchanged layout is made in which just these are reached so.", 67
    )
    offset_again: int = limit(
        5 * 64,
        "bytes",
        "So far from the start of a page new buffers begin when the winner is measured again.",
    )
    malloc_head: int = limit(
        16,
        "bytes",
        "... and so much further where the program's own arrays do not begin with a line, as glibc gives them.",
        94,
    )
    line: int = limit(64, "bytes", "A cache line.")


BUILD = BuildPolicy()
