"""Layouts in the running program, in words."""

from __future__ import annotations

from layout_advise.reports.model.candidate import CandidateReport, LiveReport
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.words.layout_words import families
from layout_advise.reports.words.quantities import nanoseconds, number


def tried(candidate: CandidateReport | None) -> str:
    """``In the running program: 0.62 of the time (0.60 to 0.65) over 3 000 calls, the same output.``, or ``3 000 calls ran
    so, the same output.``; empty where that was not tried."""
    if candidate is None or candidate.live is None:
        return ""
    silent = "the same exit status; it prints nothing that could be compared"
    same = "the same output" if candidate.live.output_bytes else silent
    return f"In the running program: {_time(candidate.live)}, {same}."


def _time(live: LiveReport) -> str:
    span = live.speedup
    if span is None:
        return f"{number(live.calls)} calls ran so"
    ends = f"{1 / span.hi:.2f} to {1 / span.lo:.2f}"
    return f"{1 / span.median:.2f} of the time ({ends}) over {number(live.timed)} calls"


def details(candidate: CandidateReport) -> str:
    """All that was measured there; empty where that was not tried."""
    live = candidate.live
    if live is None:
        return ""
    passed = f", {number(live.passed)} others went through the original{_whose(live)}" if live.passed else ""
    own = f" but for {number(live.own_words)} words that differ each time" if live.own_words else ""
    held = " In a run before it no access went to a place that is not that of the layout." if live.held else ""
    times = f"with {number(live.conversions)} conversion{'' if live.conversions == 1 else 's'}"
    return (
        f"{families(candidate)} in the running program: {_time(live)}{_each(live)}{passed}, {times}: "
        f"exit status {live.exit_status} and {number(live.output_bytes)} bytes of output as ordinarily{own}, "
        f"{live.seconds_layout:.2f} s of CPU time instead of {live.seconds_original:.2f} s, {_own(live)} included.{held}"
    )


def _each(live: LiveReport) -> str:
    """The times of a call, and how many there were in a run with all that could be; why calls were not timed."""
    if live.ns_layout is None or live.ns_original is None:
        return f" in one run (not timed: {live.untimed})" if live.untimed else " in one run"
    copies = "; the data were converted right before the calls timed, with warm and with flushed copies"
    return (
        f", {nanoseconds(live.ns_layout)} instead of {nanoseconds(live.ns_original)} each"
        f"{copies if live.converted else ''}. One run had {number(live.calls)} calls so"
    )


def _own(live: LiveReport) -> str:
    """What the program's time has of the trial's own: a look at what was written, before each call, outlasts short ones."""
    return "conversions" if live.speedup is not None else "conversions and all that the trial itself does at each call"


def _whose(live: LiveReport) -> str:
    """Why calls went through the original, and what part of the time they take."""
    why = [f"{number(live.stopped)}: way not taken"] if live.stopped else []
    why += [f"{number(live.faulted)}: other memory"] if live.faulted else []
    why += [f"{live.unimproved:.1%} of the time, not improved in the lower end"] if live.unimproved >= 0.0005 else []
    late = f"those after call {number(live.surveyed)} were not tried, and are taken to be like those before"
    why += [late] if live.surveyed else []
    why += [f"those from call {number(live.ended)} on, as the time was over"] if live.ended else []
    return f" ({'; '.join(why)})" if why else ""


def lines(hotspot: HotspotReport) -> tuple[str, ...]:
    """Sentences on the layouts that were tried in the running program, and on why others were not."""
    found = [text for c in hotspot.candidates if c.same_code_as is None and (text := details(c))]
    if hotspot.no_live:
        what = "Another layout was not tried" if found else "No trial"
        found.append(f"{what} in the running program: {hotspot.no_live}.")
    return tuple(found)
