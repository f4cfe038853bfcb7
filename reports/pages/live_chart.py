"""The calls of a layout that was tried in the running program, in their order, as SVG in the page's colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.live import LiveCourse
from layout_advise.reports.pages.inline_charts import WIDTH, chart, text_at, ticks_of
from layout_advise.reports.words.quantities import nanoseconds, number

HEIGHT, LEFT, RIGHT, ABOVE = 160, 60, WIDTH - 120, 10
STRIP, GAP = 34, 12
"""The height of the bars below, which have a scale of their own, and the room between."""
MOST_STRETCHES = 400
"""More are not drawn: a run has 120 at most."""
LONGEST_NS = 1e15
"""Longer than any call."""
LABEL = 15
"""Pixels between the names of two lines, at least."""
UNITS = (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))


@dataclass(frozen=True, slots=True)
class Shown:
    """The drawn part of a trial: nanoseconds of a call by stretch, None where there are none; ``top`` is the upper edge."""

    course: LiveCourse
    original: tuple[float | None, ...]
    layout: tuple[float | None, ...]
    copying: tuple[float, ...]
    passed: tuple[bool, ...]
    top: float

    @property
    def above(self) -> list[float]:
        """The values that would lie above the upper edge."""
        return [value for value in known((*self.original, *self.layout)) if value > self.top]


@dataclass(frozen=True, slots=True)
class LivePart:
    """The drawing on the page, and the sentences below; empty where there is none."""

    figure: str = ""
    caption: str = ""


def live_part(hotspot: HotspotReport, most: int) -> LivePart:
    """The drawing of a region's trial, of at most so many characters; where it has more, a sentence about that."""
    candidate = drawn_trial(hotspot)
    found = shown(candidate)
    if candidate is None or found is None:
        return LivePart()
    figure = live_chart(found)
    if len(figure) > most:
        return LivePart(caption="The drawing of its calls is left out, as the page has many regions; report.json has it.")
    return LivePart(figure, caption(found, candidate.id))


def drawn_trial(hotspot: HotspotReport) -> CandidateReport | None:
    """The candidate whose calls are drawn: the one that the verdict is about, else the first that was tried."""
    found = [c for c in hotspot.candidates if c.live is not None and c.live.course is not None and c.same_code_as is None]
    about = (hotspot.verdict.candidate, hotspot.verdict.about)
    return next((c for name in about for c in found if c.id == name), found[0] if found else None)


def known(values: Sequence[float | None]) -> list[float]:
    """Those that are there."""
    return [value for value in values if value is not None]


def shown(candidate: CandidateReport | None) -> Shown | None:
    """The part of a candidate's trial that can be drawn; None where that is nothing, whatever the file holds."""
    course = candidate.live.course if candidate is not None and candidate.live is not None else None
    if course is None or course.stretch < 1:
        return None
    count = min(len(course.original_ns), len(course.layout_ns), MOST_STRETCHES)
    original, layout = (_times(values[:count]) for values in (course.original_ns, course.layout_ns))
    copies = [value or 0.0 for value in _times(course.copying_ns[:count])]
    times = sorted(known((*original, *layout)))
    if not known(original) or not known(layout):
        return None
    top = min(times[-1], 2 * times[int(0.95 * (len(times) - 1))])
    passed = [left > course.stretch / 2 for left in course.left_out[:count]]
    return Shown(
        course,
        original,
        layout,
        tuple(copies + [0.0] * (count - len(copies))),
        tuple(passed + [False] * (count - len(passed))),
        1.08 * top,
    )


def _times(values: Sequence[float | None]) -> tuple[float | None, ...]:
    return tuple(value if value is not None and 0 < value < LONGEST_NS else None for value in values)


def live_chart(found: Shown) -> Markup:
    """A call's time as the original and as the mock-up over the number of the call; a band where calls were left to the
    original, and below the copies of the data as bars."""
    course, count, edge = found.course, len(found.original), ABOVE + HEIGHT
    unit, scale = next((one for one in reversed(UNITS) if found.top >= one[1]), UNITS[0])
    bottom = edge + (GAP + STRIP if any(found.copying) else 0)

    def x(place: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * place / count, 1)

    def y(ns: float) -> float:
        return round(ABOVE + HEIGHT * (1 - min(ns / found.top, 1.0)), 1)

    parts = [
        f'<rect class="band" x="{x(a)}" y="{ABOVE}" width="{x(b) - x(a):.1f}" height="{HEIGHT}"/>' for a, b in _bands(found)
    ]
    for value in ticks_of(0, found.top / scale, 5):
        parts.append(f'<path class="grid" d="M{LEFT} {y(value * scale)}H{RIGHT}"/>')
        parts.append(text_at(LEFT - 8, y(value * scale) + 4, f"{value:g}", "end"))
    for call in ticks_of(course.first, course.first + count * course.stretch - 1, 7):
        if call % 1 == 0:
            place = x((call - course.first + 0.5) / course.stretch)
            parts.append(text_at(place, bottom + 18, number(int(call)), "middle"))
    for values, kind in ((found.original, "plain"), (found.layout, "gain")):
        parts += _line(values, kind, x, y)
    parts += [text_at(RIGHT + 8, height, label, "start") for label, height in _labels(found, y)]
    parts += _bars(found.copying, bottom, x) if any(found.copying) else []
    parts.append(text_at((LEFT + RIGHT) / 2, bottom + 36, f"number of the call; {unit} each", "middle"))
    return chart(parts, bottom + 44, "Calls in the running program, in their order", description(found))


def _bars(copying: Sequence[float], bottom: float, x: Callable[[float], float]) -> Iterator[str]:
    """The strip of the copies, the longest as high as the strip."""
    longest = max(copying)
    spots = "".join(
        f"M{x(k + 0.5)} {bottom}V{bottom - STRIP * value / longest:.1f}" for k, value in enumerate(copying) if value > 0
    )
    yield f'<path class="grid" d="M{LEFT} {bottom}H{RIGHT}"/>'
    yield f'<path class="copies line" d="{spots}"/>'
    yield text_at(RIGHT + 8, bottom - STRIP / 2 + 4, f"copies ≤ {nanoseconds(longest)}", "start")


def description(found: Shown) -> str:
    """The drawing in words."""
    spans = [
        f"{name} {nanoseconds(min(values))} to {nanoseconds(max(values))}"
        for name, values in (("original", known(found.original)), ("new layout", known(found.layout)))
    ]
    copies = f"; copies of the data up to {nanoseconds(max(found.copying))}" if any(found.copying) else ""
    return f"A call takes, by stretch: {', '.join(spans)}{copies}."


def caption(found: Shown, name: str) -> str:
    """The sentences below: what each mark is, and what the drawing does not show."""
    stretch = found.course.stretch
    each = "a call" if stretch == 1 else f"the median of {number(stretch)} calls"
    copies = " Bars, with a scale of their own: copies of the data, a mean over the calls; a layout kept for good has none."
    bands = " Grey: calls left to the original."
    longest = nanoseconds(max(found.above, default=0.0))
    cut = f" Of {len(found.above)} points the value is above the upper edge; the greatest is {longest}."
    return (
        f"A point is {each}: of the original in an ordinary run, of {name} in a run of the whole program on it."
        f"{copies if any(found.copying) else ''}{bands if any(found.passed) else ''}{cut if found.above else ''}"
        " The ratio comes from further runs, in which each call ran as both."
    )


def _bands(found: Shown) -> Iterator[tuple[int, int]]:
    """First and end of the stretches that were left to the original."""
    place = 0
    for passed, group in groupby(found.passed):
        length = len(list(group))
        if passed:
            yield place, place + length
        place += length


def _line(
    values: Sequence[float | None], kind: str, x: Callable[[float], float], y: Callable[[float], float]
) -> Iterator[str]:  # fmt: skip
    """The line through all values that are there; a value between two that are not is a dot."""
    path = []
    for there, group in groupby(enumerate(values), key=lambda one: one[1] is not None):
        spots = [f"{x(k + 0.5)} {y(value)}" for k, value in group if value is not None]
        if len(spots) > 1:
            path.append(f"M{'L'.join(spots)}")
        elif there:
            across, down = spots[0].split()
            yield f'<circle class="{kind} dot" cx="{across}" cy="{down}" r="2"/>'
    if path:
        yield f'<path class="{kind} line" d="{"".join(path)}"/>'


def _labels(found: Shown, y: Callable[[float], float]) -> list[tuple[str, float]]:
    """The names of the lines beside their ends, apart from each other."""
    ends = [("original", known(found.original)[-1]), ("new layout", known(found.layout)[-1])]
    placed: list[tuple[str, float]] = []
    least = math.inf
    for name, value in sorted(ends, key=lambda one: one[1]):
        least = min(y(value) + 4, least - LABEL)
        placed.append((name, least))
    return placed
