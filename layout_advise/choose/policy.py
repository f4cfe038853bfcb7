"""The limits of a stage: which region, which calls of it, and how often they are timed in the program."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.mockup.timing.policy import limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoosePolicy:
    """The limits by which a region and calls of it are chosen, and how often they are timed in the program."""

    preferred_call: int = limit(5, "call", "The call to stop at, where nothing speaks against it.")
    short_call_ns: int = limit(20000, "ns", "Calls that take less are not timed one by one.", 12)
    alone_call_ns: int = limit(
        10000, "ns", "Where they cannot be timed as a batch, calls that take at least so long are timed one by one.", 112
    )
    most_put_words: float = limit(
        0.25,
        "words / ns",
        "Where the program writes more between the calls of a batch for each ns of the calls, putting it back takes about "
        "as long as they do, and its time is no longer known well beside theirs.",
        112,
    )
    fewest_calls: int = limit(3, "calls", "In a function that is entered less often, a loop is looked for that is not.", 62)
    verified_calls: int = limit(3, "calls", "Mock-ups are compared at so many calls, where there are that many.")
    in_situ_calls: int = limit(5, "calls", "So many calls from the one stopped at are timed in the program.")
    latest_call: int = limit(40, "call", "No later call is stopped at, unless asked for.")
    nearby: float = limit(
        0.1,
        "part",
        "The preferred call stands for the others where its time is so near to their mean ...",
    )
    near: float = limit(0.05, "part", "... else the next one that is as near as this ...")
    roughly: float = limit(0.25, "part", "... else one that is roughly as long.")
    far: float = limit(
        2.0,
        "ratio",
        "Calls whose times are further from the median than this factor are exceptions, which nothing stands for.",
    )
    unlike: float = limit(
        0.05,
        "part",
        "A call that differs by more from those around it in most processes is compared with itself alone.",
    )
    fewest_calm: int = limit(
        2,
        "processes",
        "In fewer processes with an undisturbed canary beside a call all processes tell its time.",
        22,
    )
    stretches: int = limit(16, "count", "Into at most so many stretches the calls of a run are divided.")
    stretch_calls: int = limit(16, "calls", "Each stretch has at least so many calls.")
    fewest_in_stretch: int = limit(5, "calls", "A stretch with fewer undisturbed calls tells nothing.")
    other_counts: float = limit(
        0.1,
        "part",
        "Calls are of different kinds where their counts of accesses differ by more than this part of the larger one's ...",
        17,
    )
    other_bytes: float = limit(
        0.02,
        "part",
        "... or more than this part of one's accesses goes to bytes of an element that the other does not use at all.",
        17,
    )
    other_time: float = limit(1.25, "ratio", "Times further apart than this factor can be those of different kinds.", 17)
    least_kind_share: float = limit(0.1, "part", "A kind with less of the hotspot's time is not studied by itself.", 17)
    most_kinds: int = limit(3, "count", "At most so many kinds of calls are measured.", 17)
    batch_ns: float = limit(
        2000000.0,
        "ns",
        "About how long a batch is to take: long enough to leave the first caches, where calls go all over the data.",
        12,
    )
    batch_calls: int = limit(
        4096, "calls", "A batch has no more calls, unless so many are too quick together to be timed.", 12
    )
    between_bytes: int = limit(
        256 << 20, "bytes", "More of what the program writes between the calls of batches is not recorded ...", 68
    )
    between_seconds: float = limit(10.0, "s", "... nor longer.", 68)
    batch_parts: int = limit(4, "count", "The times of so many parts of a batch tell how steady it is.", 12)
    learnt_calls: int = limit(
        16,
        "calls",
        "Where a call repeated is quicker than the program's, so many are timed together.",
        35,
    )
    learnt_ns: float = limit(2000000.0, "ns", "Longer calls are too much for a processor to learn.", 35)
    windows: int = limit(4, "count", "In so many places of the run calls are timed where the first ones are not typical.")
    windows_s: float = limit(30.0, "s", "No further such place is looked at where reaching all of them would take longer.")
    fewest_samples: int = limit(20, "samples", "With fewer the program is sampled again.", 49)
    least_elsewhere: float = limit(0.5, "s", "So much CPU time with few samples was spent in other processes.", 49)
    least_outside: float = limit(0.05, "part", "Of the CPU time: less in other processes does not count.", 49)
    most_outside: float = limit(0.5, "part", "With more the program itself is not what to study.", 49)
    most_chains: int = limit(40000, "count", "At most so many samples are looked at, those of other processes too.", 49)
    most_runs: int = limit(10, "runs", "So often a program that ends early is sampled again ...", 49)
    runs_seconds: float = limit(1.0, "s", "... and for so long.", 49)
    most_runs_seconds: float = limit(5.0, "s", "With still too few samples it goes on for so long.", 49)
    in_situ_seconds: float = limit(3.0, "s", "So long further processes are timed in the program.")
    second_look_seconds: float = limit(12.0, "s", "So long where the first times did not agree with the snapshot.")
    most_rounds: int = limit(8, "count", "So often a region is taken up again for ways that further calls took.", 59)
    least_caller_share: float = limit(0.2, "part", "Of a region's samples: a caller with less is not studied for it.", 61)
    least_other_share: float = limit(0.05, "part", "Of all samples: no other function with less is studied instead.", 61)
    most_regions: int = limit(6, "count", "At most so many regions are looked at for one that gives an answer.", 61)
    most_passed_over: float = limit(0.5, "part", "Of all samples: with more of them passed over, nothing is kept.", 61)
    held_share: float = limit(0.9, "part", "Of all samples: regions are studied until they hold so many.", 66)
    least_region_share: float = limit(0.05, "part", "Of all samples: a further region has so many for itself.", 66)
    most_overlap: float = limit(0.1, "part", "Of a region's samples: with more in others it is none beside them.", 66)
    regions_budgets: float = limit(
        2.0, "budgets", "So many times the seconds for measuring all regions have together ...", 87
    )
    least_budget: float = limit(0.125, "budgets", "... and each at least so many times.", 87)
    run_budgets: float = limit(
        4.0,
        "budgets",
        "Within so many times the seconds for measuring studies end: none is begun that would end later if it took as "
        "long as the longest one before it ...",
        87,
    )
    open_budgets: float = limit(4.5, "budgets", "... within so many where no region has an answer yet.", 87)
    mostly_answered: float = limit(
        0.5,
        "part",
        "Of all samples: where regions with an answer have so many, a further one is begun early in the run only.",
        87,
    )
    survey_budgets: float = limit(
        0.75,
        "budgets",
        "Within so many further regions are traced before any is studied: what that takes is not measured.",
        87,
    )
    chunk_ns: float = limit(
        1e7,
        "ns",
        "About how long a chunk of a loop's iterations is to take: it leaves the first caches, and there are many of them.",
        116,
    )
    fewest_chunks: int = limit(8, "chunks", "A loop with fewer is divided into shorter ones.", 116)
    most_chunk_bytes: int = limit(
        4096, "bytes", "Of a loop with more code, one within it is studied in chunks rather, where that can be.", 116
    )
    most_counting: float = limit(
        0.05, "part", "Of an iteration's time: where counting it may take more, its loop is not studied in chunks.", 116
    )
    least_loop_share: float = limit(0.05, "part", "Of the samples: a colder loop is not worth a study.", 10)


CHOOSE = ChoosePolicy()
