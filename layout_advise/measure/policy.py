"""The limits of a stage: how much is measured, and which times stand for the program."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.mockup.timing.policy import limit


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurePolicy:
    """How much is measured, and which times stand for the program."""

    quick_ns: float = limit(2000000.0, "ns", "A call that takes less is quick.", 26)
    memory_ns: float = limit(
        300000.0,
        "ns",
        "Calls that take as long may have more data than the caches of a core hold. Looking at the memory would "
        "disturb others.",
        45,
    )
    block_ns: float = limit(45000000.0, "ns", "A block of calls of the original may take about this long.")
    variant_ns: float = limit(60000000.0, "ns", "So long may one variant be called in each process, all rounds together.")
    settle_ns: float = limit(
        640000000.0, "ns", "A block whose calls still become quicker goes on for no longer: data is in the caches then.", 33
    )
    least_calls: int = limit(4, "calls", "A block has at least so many calls.")
    most_calls: int = limit(40, "calls", "A block has at most so many calls.")
    budget_s: float = limit(60.0, "s", "So long after the first process was begun, no further ones are added.", 58)
    least_part: float = limit(
        0.25, "part", "Where the run has less time left than that, so much of it is measured at least.", 87
    )
    first_part: float = limit(0.6, "part", "After this part of that time no further process is begun for all layouts ...")
    again_part: float = limit(0.3, "part", "... and after this part for the winner again.")
    most_restores: int = limit(36, "processes", "In so many processes a layout is timed at most, for one decision.", 58)
    fewest_again: int = limit(5, "processes", "The winner is measured again in at least so many processes.")
    enough_calls: int = limit(10, "calls", "A block of as many calls as may be ends after so many undisturbed ones.", 22)
    in_situ_tolerance: float = limit(0.15, "part", "So far the original may be off its time in the running program.")
    noisy_tolerance: float = limit(0.3, "part", "The same, at most, where the original differs from itself as much.", 34)
    back_to_back: float = limit(
        0.1,
        "part",
        "Where so little of a call's time passes between calls, hardly anything else gets into the caches.",
        34,
    )
    alike: float = limit(0.05, "part", "Times that differ by less tell nothing about what was in the caches.", 34)
    wide: float = limit(
        1.5,
        "ratio",
        "An interval whose upper end is that many times its lower one does not know the gain: its lower end is claimed.",
        31,
    )
    race_patience_ns: int = limit(
        2_000_000_000, "ns", "In a first race all processes together wait so long for the processor not to be slowed.", 110
    )
    look_restores: int = limit(
        2,
        "processes",
        "In so many processes the original is timed alone at first; where no other layout was verified, all is.",
        52,
    )
    fresh_calls: int = limit(4, "calls", "In each block: to forget takes a millisecond or two.", 52)
    apart_calls: int = limit(4, "batches", "In each process so many are timed with their calls one by one.", 125)
    least_cold: int = limit(2, "calls", "So many calls of each build are timed with flushed caches in each process ...", 150)
    most_cold: int = limit(10, "calls", "... and as many as this ...", 150)
    cold_ns: float = limit(10_000_000.0, "ns", "... where they take no longer together, ...", 150)
    flush_ns: float = limit(50.0, "ns", "... with so much for each cache line that is flushed.", 150)
    every_thread_count: int = limit(
        16,
        "cores",
        "Up to so many cores every number of threads is tried; beyond them its powers of two.",
        25,
    )
    share_calls: int = limit(50, "calls", "So many calls tell what each thread spends in its part of a region.", 25)
    share_restores: int = limit(3, "processes", "In so many processes that is looked at.", 25)
    thread_restores: int = limit(5, "processes", "Each number of threads is timed in at most so many processes.", 25)
    live_rest: float = limit(
        0.5,
        "part",
        "Trials in the running program have what measuring left of a region's seconds, at least this part of them ...",
        87,
    )
    live_asked: float = limit(1.0, "part", "... where they are asked for, this part ...", 146)
    live_s: float = limit(15.0, "s", "... and at least so long ...", 87)
    live_part: float = limit(0.25, "part", "... one layout for this part of it, or the fewest pairs of runs.", 69)
    live_pairs: int = limit(5, "pairs", "It runs in so many pairs of processes ...", 69)
    live_fewest_pairs: int = limit(2, "pairs", "... and in at least so many.", 69)
    live_layouts: int = limit(3, "layouts", "So many layouts of a region are tried in the running program.", 69)
    live_least_ns: float = limit(1000.0, "ns", "Shorter calls are not timed by themselves in the running program.", 69)
    live_quick_ns: float = limit(20000.0, "ns", "Shorter calls are timed by the time stamp counter alone.", 69)
    live_original_ns: float = limit(40.0, "ns", "Timing may add so much to a call of the original ...", 69)
    live_mockup_ns: float = limit(150.0, "ns", "... and so much to one of the mock-up.", 69)
    live_fewest_calls: int = limit(24, "calls", "So many calls must follow the one that was studied.", 69)
    live_passed: float = limit(
        0.2, "part", "Where more of the calls have other arguments, a mock-up is built that takes any.", 69
    )
    live_account_ns: float = limit(
        300.0, "ns", "Where the trial adds up its own time, so much of it at each call of a mock-up may be missing.", 109
    )
    live_fault_ns: float = limit(1500.0, "ns", "A write to a page that is watched may take so much longer.", 109)
    live_plan_rounds: int = limit(
        3, "rounds", "A plan is run in so many rounds: once ordinarily, and once or twice so.", 109
    )
    live_slower: float = limit(10.0, "ratio", "The program may take so many times as long as usual.", 69)


MEASURE = MeasurePolicy()
