"""The topics of ``help`` besides the commands, from the same words that reports use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from textwrap import fill

from layout_advise.reports.words import glossary
from layout_advise.reports.words.reason_words import REASONS

EXIT_CODES = {
    "0": "done, whatever the advice",
    "1": "it could not be done: the line on stderr says what, why, and what to do",
    "2": "the command line asks for something that does not exist or does not fit together",
    "3": "an alarm: the speedup of --fail-on is advised, `guard --check` found a change, `compare` something slower",
    "4": "this machine lacks something (`layout-advise doctor` says what), or `compare` found nothing in common",
    "130": "interrupted (128 and the number of the signal); everything that was started is stopped",
}
"""Exit codes of every command."""

VARIABLES = {
    "LAYOUT_ADVISE_TIMEOUT": "seconds for each run of the program, as --timeout",
    "LAYOUT_ADVISE_CC": "the compiler of the agent and of the Valgrind tool (default: gcc); mock-ups have the program's",
    "LAYOUT_ADVISE_CACHE": "the folder of built agents and tools (default: ~/.cache/layout-advise)",
    "LAYOUT_ADVISE_CALIBRATIONS": "the folder of what `calibrate` keeps (default: calibrations in that folder)",
    "LAYOUT_ADVISE_TURNS": "a name: timed parts of runs with the same one take turns (default: all on this machine)",
    "LAYOUT_ADVISE_CRIU": "the CRIU to use, and no other; a path that does not exist: none",
    "LAYOUT_ADVISE_VALGRIND": "the Valgrind to use (default: the one in PATH)",
    "LAYOUT_ADVISE_MACHINE": "the machine's name in the table of `farm` (default: its host name)",
    "LAYOUT_ADVISE_FARM_LOCK": "the file by which jobs of `farm` on one machine wait for each other",
    "PIN_ROOT": "an unpacked Pin kit, for --backend pin",
    "NO_COLOR": "no colours on the terminal",
}
"""Variables of the environment that are read."""

OTHER_ANSWERS = {
    "measured-gain": "a layout is faster, verified and measured again: the interval lies above 1",
    "no-gain": "other layouts were measured, and none is faster",
    "no-program-gain": "single regions are open, but in most of the program's time no layout can gain as much as is advised",
    "advised-layout": "the layout that an earlier run advised is there, and this run's best gained no more (--baseline)",
    "no-rule-applies": "no rule of the layout algebra gives a layout to try",
    "within-noise": "the interval holds both a gain and none, for noise alone",
    "mockup-form": "the interval holds both, for the mock-up's form",
    "compiler-dependent": "the interval holds both, for what compilers make of the loop",
    "placement-dependent": "the interval holds both, for where the code lies",
    "scalar-mockups": "the interval holds both, as mock-ups without vector instructions are compared",
}
"""Reasons of answers, and of intervals that are left open."""

NO_ANSWER = REASONS


def exit_codes() -> str:
    """The exit codes."""
    return _table(EXIT_CODES)


def variables() -> str:
    """The variables of the environment."""
    return _table(VARIABLES)


def reasons() -> str:
    """The reasons of verdicts, and what to do."""
    return _table({**OTHER_ANSWERS, **{name: f"{why}. {remedy}" for name, (why, remedy) in NO_ANSWER.items()}})


def layouts() -> str:
    """The words for layouts and variants."""
    return _table({**glossary.FAMILY_NOTES, **glossary.VARIANT_NOTES})


def evidence() -> str:
    """The words for evidence and checks."""
    return _table({**glossary.EVIDENCE_NOTES, **glossary.CHECK_NOTES})


def rules() -> str:
    """The rewriting rules of the layout algebra."""
    return _table(glossary.RULE_NOTES)


TOPICS: dict[str, Callable[[], str]] = {
    "exit-codes": exit_codes,
    "variables": variables,
    "reasons": reasons,
    "layouts": layouts,
    "evidence": evidence,
    "rules": rules,
}
"""The topics besides the commands."""


def overview(commands: Iterable[tuple[str, str]]) -> str:
    """All commands and topics, with a line each."""
    listed = _table(dict(commands))
    return f"commands:\n\n{listed}\ntopics:\n\n" + _table({name: (text.__doc__ or "") for name, text in TOPICS.items()})


def _table(rows: dict[str, str]) -> str:
    """Names with a text each, at most 80 columns wide."""
    wide = max(map(len, rows)) + 2
    indent = " " * (wide + 2)
    return "".join(
        f"{fill(text, 78, initial_indent=f'  {name:<{wide}}', subsequent_indent=indent)}\n" for name, text in rows.items()
    )
