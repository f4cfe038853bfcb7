"""Short words for a verdict's reason, its doubts and the checks: what it is, and what to do about it."""

from __future__ import annotations

DOUBT_NAMES = {
    "processes": "run-to-run noise",
    "live": "noise of the running program",
    "form": "the form of the mock-up",
    "rebuild": "the comparison with the rebuilt original",
    "placement": "the place of the code",
    "caches": "what the caches hold",
    "program": "the time in the running program",
    "apart": "how far short calls overlap",
    "promises": "what the compiler makes of the loop",
    "vectors": "the mock-ups' form of the loop",
    "indices": "what reaching memory of its own costs",
    "put-back": "what the program writes between the calls",
    "counting": "what counting the loop's iterations takes",
    "machine": "the program's own machine code in that layout",
}
"""The terms of an error budget in a sentence."""

DOUBT_REMEDIES = {
    "processes": "A quieter machine or more processes (--restores N) narrow it.",
    "live": "A quieter machine or a longer run narrows it.",
    "form": "The program's own compiler and flags (build it with -g) narrow it.",
    "rebuild": "A quieter machine or more processes (--restores N) narrow it.",
    "placement": "A larger input, whose loops run longer, narrows it.",
    "caches": "Another call (--call N) may narrow it.",
    "program": "Another call (--call N) may narrow it.",
    "apart": "Another hotspot (--hotspot NAME) with longer calls, such as the caller, may narrow it.",
    "promises": "A version written by hand shows which code the compiler makes.",
    "vectors": "A version written by hand shows what vectors gain.",
    "indices": "A version written by hand shows what the layout gains without that.",
    "put-back": "Another hotspot (--hotspot NAME) with longer calls, such as the caller, may narrow it.",
    "counting": "A loop within it, or around it, with longer iterations (--hotspot NAME) may narrow it.",
    "machine": "A quieter machine or more processes (--restores N) narrow it.",
}
"""What narrows each of them."""

REASONS = {
    "few-calls": ("one call makes more accesses than are recorded", "Raise --max-refs, or use a smaller input."),
    "recursive": ("it calls itself, so its calls cannot be timed apart", "Study its caller: --hotspot NAME."),
    "threads": ("several threads enter it", "Only parallel regions that one thread starts are measured."),
    "short-calls": ("its calls are too short to time", "Study its caller (--hotspot NAME), or use a larger input."),
    "trace-truncated": (
        "the trace was cut, so no layout is claimed",
        "Raise --max-refs, or use a smaller input.",
    ),
    "not-lifted": (
        "an instruction could not be turned into C",
        "Other compiler flags may avoid it.",
    ),
    "not-measured": ("the call could not be repeated", "`layout-advise doctor` says what this machine lacks."),
    "passed-over": ("most of the time is spent where nothing could be measured", "--hotspot NAME studies another function."),
    "identity-not-verified": ("the unchanged mock-up does not reproduce the original", "Another call (--call N) may work."),
    "nothing-changed": (
        "the calls leave memory as it was, so nothing can be compared",
        "Another call (--call N) or other data may write more.",
    ),
    "comparison-blind": ("a wrong layout would not have been noticed", "Another call (--call N) may write more."),
    "rounding-only": ("sums of several threads round differently each run", "--allow-reassociation accepts that."),
    "nothing-measured": ("no other layout could be measured", "The table of layouts gives the reasons."),
    "not-confirmed": (
        "the gain did not hold when measured again",
        "A quieter machine or --restores N help.",
    ),
    "kinds-disagree": ("calls of one kind gain and others lose", "Measure with the input that matters to you."),
    "other-regions": ("another region of the program may lose by it", "The layouts are compared over all regions below."),
    "not-in-program": ("the program did not gain when all of it ran so", "The run is told with the plan of the program."),
    "not-all-tried": ("not all layouts could be tried", "What was not tried is told below."),
    "scattered-objects": ("its objects were allocated one by one", "Allocating them in one array makes them measurable."),
    "structure-unclear": ("what its memory holds could not be recognised", "Debug information (-g) of all files may help."),
    "own-memory": (
        "it works on memory that it allocates itself",
        "What it calls with that memory can be studied: --hotspot NAME.",
    ),
    "records-unclear": (
        "its numbers may be records that nothing declares",
        "Declare them as a structure.",
    ),
    "not-in-situ": ("times in the snapshot differ from the program's", "Another call (--call N) may narrow it."),
}
"""Why there is no answer, by the verdict's reason: a clause, and what to do."""


def clause(reason: str) -> str:
    """Why there is no answer, in words: ``its calls are too short to time``; the reason itself where there are none."""
    return REASONS.get(reason, (reason.replace("-", " "),))[0]


IN_THE_INTERVAL = "already in the interval"
NOTHING_TIMED = "no layout was timed, so it does not matter"
NO_MATTER = (IN_THE_INTERVAL, NOTHING_TIMED)
HELD = {
    "noise-floor": "how much the original varies",
    "identity": "what the mock-up's form costs",
    "in-situ": "the program's own times",
    "other-data": "what calls on other data take",
}
"""What the interval holds where only this check is not ok."""
"""The effects of checks that change nothing in what is said."""
CHECK_EFFECTS = {
    "noise-floor": IN_THE_INTERVAL,
    "identity": IN_THE_INTERVAL,
    "placement": "-falign-loops=32 may gain it without a new layout",
    "in-situ": IN_THE_INTERVAL,
    "steady-calls": "other calls may gain less or more: try --call N",
    "later-calls": "later calls may gain another amount: try --call N",
    "other-data": IN_THE_INTERVAL,
    "waits": "of the time that passes less is gained",
    "calm": "the machine was busy: measure again when it is idle",
    "page-faults": "the calls left are few: use --restores N",
    "trace-complete": "no layout is claimed from a part of the accesses",
    "wrong-map": "the comparison may miss errors: check the output after a change",
    "calls-verified": "other calls may differ: check the output after a change",
    "between-calls": "calls may find other data than in the program",
    "replayed-batch": "calls may take other branches than in the program",
    "deterministic": "runs differ: fix the seed, or measure again",
    "same-blocks": "later calls use other memory, where the layouts were not compared",
}
"""What a failed check means for the result, or what to do about it."""
