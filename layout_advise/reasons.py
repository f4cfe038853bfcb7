"""The stable words for why a verdict is what it is, and what the road does about some of them."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The field ``reason`` of a verdict in the report."""

    MEASURED_GAIN = "measured-gain"
    NO_GAIN = "no-gain"
    NO_PROGRAM_GAIN = "no-program-gain"
    NO_RULE_APPLIES = "no-rule-applies"
    ADVISED_LAYOUT = "advised-layout"
    # what cannot be measured
    FEW_CALLS = "few-calls"
    RECURSIVE = "recursive"
    THREADS = "threads"
    SHORT_CALLS = "short-calls"
    TRACE_TRUNCATED = "trace-truncated"
    NOT_LIFTED = "not-lifted"
    NOT_MEASURED = "not-measured"
    PASSED_OVER = "passed-over"
    # what the comparison found
    IDENTITY_NOT_VERIFIED = "identity-not-verified"
    NOTHING_CHANGED = "nothing-changed"
    COMPARISON_BLIND = "comparison-blind"
    ROUNDING_ONLY = "rounding-only"
    # what the times leave open
    NOT_IN_SITU = "not-in-situ"
    NOTHING_MEASURED = "nothing-measured"
    WITHIN_NOISE = "within-noise"
    NOT_CONFIRMED = "not-confirmed"
    MOCKUP_FORM = "mockup-form"
    COMPILER_DEPENDENT = "compiler-dependent"
    PLACEMENT_DEPENDENT = "placement-dependent"
    SCALAR_MOCKUPS = "scalar-mockups"
    KINDS_DISAGREE = "kinds-disagree"
    OTHER_REGIONS = "other-regions"
    NOT_IN_PROGRAM = "not-in-program"
    # what was not tried, where nothing was measured
    NOT_ALL_TRIED = "not-all-tried"
    SCATTERED_OBJECTS = "scattered-objects"
    STRUCTURE_UNCLEAR = "structure-unclear"
    OWN_MEMORY = "own-memory"
    RECORDS_UNCLEAR = "records-unclear"
    UNDECIDED_YET = ""


MEASURED = frozenset((Reason.MEASURED_GAIN, Reason.NO_GAIN, Reason.NO_PROGRAM_GAIN))
"""Reasons of an answer that rests on measured times."""
TELLS_NOTHING = frozenset((Reason.NOTHING_MEASURED, Reason.NO_RULE_APPLIES, Reason.STRUCTURE_UNCLEAR, Reason.OWN_MEMORY))
"""With these, nothing is known of any layout."""
