"""The report's part about layouts that were tried: what they are, how they were compared, and what they gain.

Part of the contract in :mod:`layout_advise.reports.model.contract`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from layout_advise.reports.model.live import LiveCourse

Evidence = Literal["live", "verified", "close", "replayed", "modelled", "rejected"]


class Interval(msgspec.Struct, frozen=True):
    """A ratio of undisturbed times over ``restores`` restored processes, with its 95 % bootstrap interval
    (``docs/decisions/0021``); ``median`` is the contract's name for the ratio."""

    median: float
    lo: float
    """Lower end of the 95 % interval."""
    hi: float
    """Upper end of the 95 % interval."""
    restores: int | None = None


class Identity(msgspec.Struct, frozen=True):
    """The identity mock-up; ``ratio`` is its time over the original's."""

    evidence: Evidence
    """How far it was compared with the original."""
    ratio: Interval | None
    reason: str | None
    """Why it is not ``verified``, or None."""


class PartReport(msgspec.Struct, frozen=True):
    """Fields that share a term of the new layout."""

    structure: str
    """Id of the structure that the fields are of."""
    fields: tuple[str, ...]
    """Names of the fields, in their order in memory."""
    unit_bytes: int
    """The unit of ``term``, in bytes."""
    term: str
    """The term of the layout algebra."""
    index_map: str = ""
    """Where a field of element [i][j]... goes, with a legend: ``byte = 64*(i // 4) + 8*(i % 4) of p_x; i < 1000``."""


class Verification(msgspec.Struct, frozen=True):
    """The extent of a comparison: calls, bytes compared, bytes that the call changed, greatest ulp difference."""

    calls: int
    """Calls after which original and mock-up were compared."""
    bytes_compared: int
    """Bytes compared, over all these calls."""
    bytes_changed: int
    """Bytes of these that the original changed."""
    max_ulp: int
    """Greatest difference of two floating-point numbers, in units in the last place; 0 where all bytes are equal."""


class Conversion(msgspec.Struct, frozen=True):
    """Cost of converting to and from the new layout once; calls after which that is paid back (None: never).

    ``copied_in`` and ``copied_out`` are the fields that a view around one call copies. ``around`` is the speedup with the
    conversion around every call as it was timed, where it was; ``break_even`` the break-even's interval over processes.
    ``placement``: ``once`` where nothing else touched the structures between the calls watched, so that one conversion lasts
    over these; ``each-period`` where something did; None where that is not known."""

    in_ms: float
    """Milliseconds to bring the data into the new layout once: the median over processes of the undisturbed time in each."""
    out_ms: float
    """Milliseconds to bring them back once, in the same way."""
    break_even_calls: int | None
    """Calls in a row after which a conversion there and back has paid; None: never."""
    copied_in: tuple[str, ...] = ()
    copied_out: tuple[str, ...] = ()
    around: Interval | None = None
    break_even: Interval | None = None
    placement: Literal["once", "each-period"] | None = None


class KindSpeedup(msgspec.Struct, frozen=True):
    """The gain of a candidate at the calls of one kind. ``kind`` is the place in the hotspot's ``kinds``, from 0;
    ``speedup`` is exactly 1 where these calls do not touch what is re-laid."""

    kind: int
    speedup: Interval | None


class Traffic(msgspec.Struct, frozen=True):
    """Distinct cache lines touched by one call in the structures concerned."""

    lines_before: int
    """Distinct cache lines now, counted in the trace."""
    lines_after: int
    """Distinct cache lines in the new layout, by its index map from the same trace."""


class Bytes(msgspec.Struct, frozen=True):
    """Size of the structures concerned."""

    before: int
    """Bytes as they lie now."""
    after: int
    """Bytes in the new layout, of the fields that the region uses."""


class Elsewhere(msgspec.Struct, frozen=True):
    """Evidence ``modelled``: distinct cache lines of those accesses of another user of a structure that were seen, as it
    lies now and in the candidate's layout. Fields that the hotspot does not use are counted as an array of structures of the
    rest. A sample: no time is claimed."""

    symbol: str
    """The function that was seen to use it."""
    structure: str
    """Id of the structure."""
    lines_before: int
    """Distinct cache lines of the accesses seen, now."""
    lines_after: int
    """The same in the new layout."""


class BudgetTerm(msgspec.Struct, frozen=True):
    """One doubt about a gain as what it leaves possible by itself: ``term`` is ``processes``, ``live``, ``form``,
    ``rebuild`` (over the unchanged mock-up), ``placement``, ``caches``, ``program``, ``apart`` (the calls of a batch one by
    one), ``promises``, ``vectors``, ``indices``, ``put-back``, ``counting`` (of a loop's iterations) or ``machine`` (code);
    ``lo`` and ``hi`` are speedups, ``how`` says how these were measured."""

    term: str
    lo: float
    hi: float
    how: str


class LiveReport(msgspec.Struct, frozen=True):
    """A layout in the running program: from the call studied on, ``calls`` of the region ran as the mock-up, ``passed`` were
    left to the original, and the data were converted ``conversions`` times. The program ended with ``exit_status`` and
    printed ``output_bytes`` as in an ordinary run, but for ``own_words`` words that differ from run to run.

    ``speedup`` is the original's time over the layout's, of ``timed`` calls that ran as both, in so many pairs of runs as it
    has ``restores``; ``ns_original`` and ``ns_layout`` are those of one call. These are null where calls were not timed by
    themselves, as they are too short or too few, or it would take too long. ``seconds_original`` and ``seconds_layout``
    are CPU time of the whole program, conversions included. ``converted``: the data were converted right before the timed
    calls; the interval then holds ``speedup`` with warm and with flushed copies.

    Of the calls left to the original the mock-up came to a way that no compared call took at ``stopped``, and reached for
    other memory than the call studied at ``faulted``. ``unimproved`` is the part of the calls' time that all those take
    which were left to the original; the lower end of ``speedup`` has it as slow as it was. ``held``: in a run of its own
    each access in all calls of the mock-up was held against the layout, and none went to another place. ``surveyed``: the
    last call of which it was found out whether the mock-up can do it, 0 where it was of all; later calls are among
    ``passed``, and for ``unimproved`` those before stand for them."""

    calls: int
    passed: int
    conversions: int
    timed: int
    speedup: Interval | None
    ns_original: float | None
    ns_layout: float | None
    seconds_original: float
    seconds_layout: float
    exit_status: int
    output_bytes: int
    own_words: int
    converted: bool
    stopped: int = 0
    faulted: int = 0
    unimproved: float = 0.0
    held: bool = False
    surveyed: int = 0
    course: LiveCourse | None = None
    """The calls in their order; None in runs of versions that did not keep it, and where calls were not timed."""
    ended: int = 0
    """The first call after the time for the trial was over, from which on all were left to the original; 0: it was not."""
    untimed: str | None = None
    """Why calls were not timed."""


class RuleStep(msgspec.Struct, frozen=True):
    """A step of the way to a layout."""

    rule: str
    """The number of the rewriting rule, as in ``docs/algebra.md``."""
    term: str
    """The term that it leads to."""
    undone: bool = False
    """Whether the rule is taken from right to left, as on the way from arrays to records of them."""


class CandidateReport(msgspec.Struct, frozen=True):
    """One layout that was tried. ``speedup`` is original over mock-up, None for modelled evidence. ``classes``: elements
    are stored by class, in this many parts; of each so many neighbours the one that a call uses is in the first."""

    id: str
    """Unique in the region (``c3``); with the variant where there are several (``c3-simd``)."""
    structures: tuple[str, ...]
    """Ids of the structures that are laid out anew."""
    families: tuple[str, ...]
    """Words of the kinds of layouts that it is made of (``soa``, ``aosoa``, ``compact``)."""
    block: int | None
    """Elements in a block, of layouts in blocks."""
    temporary: bool
    """Whether it is judged as a copy made around each call (``--temporary``): its conversion then counts in the
    verdict, while ``speedup`` is without it."""
    layout: dict[str, str]
    """By id of a structure its new term."""
    derivation: tuple[str, ...]
    """The rewriting rules in the order of their use, by their numbers in ``docs/algebra.md``."""
    variant: Literal["plain", "restrict", "lanes", "simd"]
    """How the mock-up is written: ``restrict`` promises the compiler that arrays do not overlap, ``lanes`` is plain C
    with loops over blocks, ``simd`` vector types."""
    parts: tuple[PartReport, ...]
    """The new arrays."""
    evidence: Evidence
    """How it was shown; from the strongest on: tried in the running program, all bytes equal, equal up to rounding, only
    loads and stores replayed, only modelled, refused."""
    reason: str | None
    """Why it is not ``verified``, or None."""
    verification: Verification | None
    """What was compared; None where nothing was."""
    speedup: Interval | None
    over_identity: Interval | None
    """The time of the unchanged mock-up in the fastest of its comparable builds over that of this one."""
    cold: Interval | None
    """The speedup with flushed caches; None where it was not timed."""
    conversion: Conversion | None
    """None where it was not timed."""
    net_speedup: float | None
    """The speedup with a conversion around every call; None where that is not known."""
    program_speedup: float | None
    """The speedup of the whole program by Amdahl's law, with the region's part of the samples."""
    traffic: Traffic | None
    """Modelled, from the trace; None where that is not known."""
    bytes: Bytes
    """Memory that the region works on."""
    mockup: str | None
    """The mock-up's file in the run directory."""
    declaration: str = ""
    """The new types in C, with a comment where each field went."""
    drawing: str = ""
    """The new layout drawn, as SVG."""
    source: str = ""
    """The mock-up in C, without the middle of long tables."""
    measured_again: bool = False
    """Whether ``speedup`` is of a second measurement, in new processes and a new build, which guards against choosing by
    luck."""
    classes: int | None = None
    replay: Interval | None = None
    """Time of the loads and stores alone, replayed in the present layout, over that in this one (evidence ``replayed``): no
    speedup of the hotspot."""
    kinds: tuple[KindSpeedup, ...] = ()
    """The speedup at each kind of calls that was measured, of hotspots with several. ``speedup`` is then that over all
    of them, weighted by their shares."""
    elsewhere: tuple[Elsewhere, ...] = ()
    """The effects on the other users of the structures."""
    same_code_as: str | None = None
    """The variant of this layout whose machine code this one's is, and whose figures it has: it was not run itself."""
    arrays: tuple[tuple[str, ...], ...] = ()
    """The names of the fields that each new array holds together. ``parts`` tell fields of different sizes apart, which may
    lie in one record."""
    places: int = 1
    """With its code at so many addresses it was timed: ``speedup`` is over its mean time, the interval holds all of them."""
    error_budget: tuple[BudgetTerm, ...] = ()
    """The doubts about the gain, each measured; what is claimed is their hull: the least ``lo`` to the greatest ``hi``."""
    live: LiveReport | None = None
    """The layout in the running program itself (evidence ``live``); ``speedup`` above is that in the snapshot."""
    proposers: tuple[str, ...] = ()
    """The ways by which the layout was found: ``rules``, ``search``, ``field graph``, ``affinity``, ``tiles``."""
    steps: dict[str, tuple[RuleStep, ...]] = {}
    """By id of a structure the rules one after another with the terms that they lead to, of the fields that take most of
    them; none for a structure that shares records with others."""
    blocks: tuple[int, ...] = ()
    """The elements in a block of each of ``arrays``, 0 for one that is not in blocks; empty where ``block`` says it all."""
    change: str = ""
    """Declarations, allocations and accesses as a diff against today's: lines that begin with ``-``, ``+`` or a blank."""

    @property
    def layout_id(self) -> str:
        """``c3`` of ``c3-restrict``: the id without the form of the loop."""
        return self.id.removesuffix(f"-{self.variant}")

    @property
    def predicted(self) -> Interval | None:
        """The gain with every doubt in it, the hull of the error budget; None where it was not measured."""
        if self.speedup is None:
            return None
        low = min([self.speedup.lo, *(term.lo for term in self.error_budget)])
        return Interval(self.speedup.median, low, max([self.speedup.hi, *(term.hi for term in self.error_budget)]))

    def __repr__(self) -> str:
        gain = f", {self.speedup.median:.2f} times" if self.speedup is not None else ""
        return f"<CandidateReport {self.id}: {' '.join(self.families) or 'as it is'}, {self.evidence}{gain}>"


class Ablation(msgspec.Struct, frozen=True):
    """The effects of the layout and of the vector instructions apart: speedups over the original of the unchanged layout
    without them (``neither``) and with them (``simd``), of ``candidate`` without (``layout``) and with them (``both``)."""

    candidate: str
    neither: Interval | None
    layout: Interval | None
    simd: Interval | None
    both: Interval | None
    layout_alone: Interval | None = None
    """What the layout gains by itself: the unchanged layout's time over the candidate's, both without vector instructions,
    in the same rounds."""
    simd_alone: Interval | None = None
    """What vector instructions gain in the candidate's layout: its time without them over that with them, in the same
    rounds."""
