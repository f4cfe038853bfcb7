"""What is written to a terminal: consoles that spell out control characters in what they are given, and guarded streams.

Everything that the commands print goes through one of both; colours are the consoles' own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from layout_advise.reports.words.visible import visible


class PlainConsole(Console):
    """A console of rich on which foreign text cannot steer the terminal: only the console's own styles do."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of ``renderable``, their text made visible."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


class GuardedStream:
    """A text stream whose text is made visible; ``styled`` is the stream itself, for what a console has made."""

    def __init__(self, styled: TextIO) -> None:
        self.styled = styled

    def write(self, text: str) -> int:
        """Writes ``text`` without control characters; returns the length of what was given."""
        self.styled.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes each of ``lines``."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.styled, name)


def guarded(stream: TextIO) -> TextIO:
    """``stream`` with its text made visible; once is enough."""
    return stream if isinstance(stream, GuardedStream) else cast("TextIO", GuardedStream(stream))


def styled(stream: TextIO) -> TextIO:
    """The stream behind a guarded one, for text that a :class:`PlainConsole` has made."""
    return stream.styled if isinstance(stream, GuardedStream) else stream
