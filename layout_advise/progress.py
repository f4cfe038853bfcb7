"""Progress on stderr, on a terminal only: one line for the stage that runs, with what it has done."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Self

from rich.status import Status

from layout_advise.reports.pages.console import PlainConsole, styled

SIGN_OF_LIFE_S = 30.0
"""Where stderr is no terminal, a step is written down after so long without a line: a log that stands still says nothing."""


class Interrupted:
    """The signal that is to end the run; None: there was none. Python drops an exception that is raised in a destructor or
    in the callback of a weak reference (imports have these): what a handler raises there would be lost. The next step of
    the run raises it again."""

    number: int | None = None


class Progress:
    """Says what is going on. Silent with ``quiet``; when stderr is no terminal too, but for ``note``, a step each half
    minute, and with ``verbose`` the names of the stages."""

    def __init__(self, quiet: bool = False, verbose: bool = False) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self.console = PlainConsole(file=styled(sys.stderr), highlight=False, no_color=bool(os.environ.get("NO_COLOR")))
        self._status: Status | None = None
        self._started = time.monotonic()
        self._stage = ""
        self.seconds: dict[str, float] = {}
        self.spans: list[tuple[str, float, float]] = []
        self._born = self._started
        self._told = self._started
        """The time of the last line that stays."""
        self._said: set[str] = set()

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty():
            self._status = self.console.status("starting")
            self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close_stage()
        if self._status is not None:
            self._status.stop()
            self._status = None

    def stage(self, key: str, text: str) -> None:
        """A stage of the road begins; its wall time is kept in ``seconds[key]``, and in ``spans``
        (name, start, length in seconds) when it ends."""
        self.close_stage()
        self._stage = key
        if self.verbose:
            self.note(f"{key}: {text}")
        self.step(text)

    def step(self, text: str) -> None:
        """Shows the step within the stage. Raises KeyboardInterrupt where a signal came and nobody was told."""
        if Interrupted.number is not None:
            raise KeyboardInterrupt(Interrupted.number)
        if self._status is not None:
            self._status.update(text)
        elif time.monotonic() - self._told >= SIGN_OF_LIFE_S:
            self.note(f"{text} ({time.monotonic() - self._born:.0f} s)")

    def count(self, text: str, done: int, total: int) -> None:
        """``text 3/9``."""
        self.step(f"{text} {done}/{total}")

    def note(self, text: str, *, once: bool = False) -> None:
        """A line that stays, on stderr, unless quiet; ``once``: unless that was said before."""
        if once and text in self._said:
            return
        self._said.add(text)
        self._told = time.monotonic()
        if not self.quiet:
            self.console.print(text, soft_wrap=True, markup=False)

    def close_stage(self) -> None:
        """The stage that runs is over."""
        now = time.monotonic()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._started
            self.spans.append((self._stage, self._started - self._born, now - self._started))
        self._started = now
        self._stage = ""
