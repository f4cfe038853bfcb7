"""Parts of a report that show themselves in a notebook: tables of rows, a layout, a whole page."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from layout_advise.errors import MachineError, UsageError
from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.pages.drawings import drawing
from layout_advise.reports.words.layout_words import families, traffic
from layout_advise.reports.words.quantities import interval, number

Item = TypeVar("Item")
MOST_ROWS = 30
"""Rows of a table that are shown; ``to_frame`` has all."""


@dataclass(frozen=True, slots=True, repr=False)
class ItemTable(Generic[Item]):
    """Items of a report by number or by name, with a row each of named values."""

    what: str
    items: tuple[Item, ...]
    name: Callable[[Item], str]
    row: Callable[[Item], dict[str, Any]]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __getitem__(self, key: int | str) -> Item:
        """The item of that number, or of that name. Raises :class:`UsageError` where there is none."""
        if isinstance(key, int):
            return self.items[key]
        found = next((item for item in self.items if self.name(item) == key), None)
        if found is None:
            names = ", ".join(self.name(item) for item in self.items[:MOST_ROWS])
            raise UsageError(f"no {self.what} {key}", "", f"there are: {names}" if names else "there is none")
        return found

    def __repr__(self) -> str:
        names = ", ".join(self.name(item) for item in self.items[:8])
        return f"<{len(self.items)} {self.what}s: {names}{', ...' if len(self.items) > 8 else ''}>"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return [self.row(item) for item in self.items]

    def to_frame(self) -> Any:
        """A pandas data frame of the rows. Raises :class:`MachineError` without pandas."""
        try:
            import pandas
        except ImportError as error:
            hint = "pip install 'layout-advise[notebook]'"
            raise MachineError("cannot make a data frame", "pandas is not installed", hint) from error
        return pandas.DataFrame(self.rows)

    def _repr_html_(self) -> str:
        rows = self.rows[:MOST_ROWS]
        heads = "".join(f"<th>{html.escape(name)}</th>" for name in (rows[0] if rows else ()))
        cells = ["".join(f"<td>{html.escape(_cell(value))}</td>" for value in row.values()) for row in rows]
        more = f"<p>{len(self.items) - len(rows)} more</p>" if len(self.items) > len(rows) else ""
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True, repr=False)
class LayoutView:
    """A layout that was tried: its drawing, the change of the source, its C."""

    candidate: CandidateReport

    @property
    def change(self) -> str:
        """The change of the source as a diff."""
        return self.candidate.change

    @property
    def source(self) -> str:
        """The mock-up in C."""
        return self.candidate.source

    @property
    def terms(self) -> dict[str, str]:
        """The layout terms by structure."""
        return dict(self.candidate.layout)

    def __repr__(self) -> str:
        return f"<layout {self.candidate.id}: {families(self.candidate)}, {interval(self.candidate.speedup)}>"

    def _repr_html_(self) -> str:
        one = self.candidate
        head = f"<p><b>{html.escape(one.id)}</b> {html.escape(families(one))}: {one.evidence}, {interval(one.speedup)}</p>"
        terms = "".join(f"<p><code>{html.escape(term)}</code></p>" for term in dict.fromkeys(one.layout.values()))
        lines = f"<p>{html.escape(_lines(one))}</p>" if one.traffic is not None else ""
        return f"{head}{drawing(one.drawing)}{terms}{lines}<pre>{html.escape(one.change)}</pre>"


def _lines(one: CandidateReport) -> str:
    """``cache lines of a call, modelled: 1 625 001 now, 487 500 (−70 %) then``."""
    before = number(one.traffic.lines_before) if one.traffic is not None else ""
    return f"cache lines of a call, modelled: {before} now, {traffic(one)} then"


@dataclass(frozen=True, slots=True, repr=False)
class FramedPage:
    """A whole HTML page in a frame of its own (``srcdoc``): no server, no file, no network."""

    page: str
    height: int = 640

    def __repr__(self) -> str:
        return f"<report of {len(self.page):,} characters of HTML>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts" allow="clipboard-write *" '
            f'style="width: 100%; height: {self.height}px; border: 1px solid #ccc" title="layout-advise report"></iframe>'
        )


def first_of(items: Sequence[Item], what: str) -> Item:
    """The first item. Raises :class:`UsageError` where there is none."""
    if not items:
        raise UsageError(f"the run has no {what}")
    return items[0]
