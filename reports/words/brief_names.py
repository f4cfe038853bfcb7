"""Long names made short: instances of C++ templates have several hundred characters, sentences no room for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport

MOST, MOST_PLAIN = 48, 64
"""Characters of a name in a sentence; of one without brackets and namespaces, of which each part may matter."""
AS_WRITTEN = frozenset({"source", "change", "declaration", "drawing", "layout", "command"})
"""What is code, or typed: names in it stay whole."""

_NO_BRACKETS = re.compile(r"operator ?(?:<=>|<<=|>>=|<<|>>|<=|>=|->\*|->|<|>|\(\))|\(anonymous namespace\)|->")
_AWAY = str.maketrans("<>(){}", "\ue000\ue001\ue002\ue003\ue004\ue005")
_BACK = str.maketrans("\ue000\ue001\ue002\ue003\ue004\ue005", "<>(){}")
_OPEN, _CLOSE = "<({", ">)}"


def brief(name: str, most: int = MOST) -> str:
    """``name`` in at most so many characters: inner arguments of templates become ``…`` first, then all of them and those
    of functions, then the namespaces before the last names; at last it is cut. Short names stay as they are."""
    if len(name) <= most or (most == MOST and name.isidentifier() and len(name) <= MOST_PLAIN):
        return name
    forms = list(_shorter(_NO_BRACKETS.sub(lambda found: found[0].translate(_AWAY), name)))
    fitting = next((form for form in forms if len(form) <= most), None)
    return (fitting or f"{forms[-1][: most - 1]}…").translate(_BACK)


def _shorter(name: str) -> Iterator[str]:
    """Shorter and shorter forms of a name; none of them is empty."""
    depths = _depths(name)
    if depths is None:
        yield name
        return
    for depth in range(max(depths, default=0) - 1, 0, -1):
        yield _collapsed(name, depths, depth)
    yield (short := _collapsed(name, depths, 0))
    parts = short.split("::")
    for left in range(1, len(parts)):
        yield f"…::{'::'.join(parts[left:])}"


def _depths(name: str) -> list[int] | None:
    """How many brackets are open at each character, those of its own not counted; None where they do not match."""
    depth, found = 0, []
    for letter in name:
        depth -= letter in _CLOSE
        if depth < 0:
            return None
        found.append(depth)
        depth += letter in _OPEN
    return None if depth else found


def _collapsed(name: str, depths: list[int], most: int) -> str:
    """``name`` with what stands in more than so many brackets left out."""
    return re.sub("\ue006+", "…", "".join("\ue006" if d > most else c for c, d in zip(name, depths, strict=True)))


def long_names(report: Report) -> dict[str, str]:
    """The brief form of each name of functions, types and variables in ``report`` that is too long for a sentence; no two
    are the same."""
    made: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(_names(report)):
        if (text := brief(name)) == name:
            continue
        number = 2
        while text in taken:
            text, number = f"{brief(name, MOST - 5)} ({number})", number + 1
        taken.add(text)
        made[name] = text
    return made


def _names(report: Report) -> Iterator[str]:
    for hotspot in report.hotspots:
        yield from _names_of(hotspot)
    yield from (one.symbol for one in report.profile)
    yield from (one.name for one in report.passed_over)


def _names_of(hotspot: HotspotReport) -> Iterator[str]:
    yield hotspot.name or hotspot.symbol
    yield from (call.function for call in hotspot.kept_calls if call.function)
    for structure in hotspot.structures:
        yield structure.name
        yield re.sub(r"^(struct|class|union) ", "", structure.type or "")
        yield from (user.symbol for user in structure.users)
        yield from (field.name for field in (*structure.fields, *structure.cold_fields))


def with_brief_names(report: Report, names: Mapping[str, str]) -> Report:
    """``report`` with ``names`` replaced wherever they stand, but for code. For reading only: what is exported as data, and
    what is compared, has the names."""
    if not names:
        return report
    pattern = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    return msgspec.convert(_replaced(msgspec.to_builtins(report), pattern, names), Report)


def _replaced(value: Any, pattern: re.Pattern[str], names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(lambda found: names[found[0]], value)
    if isinstance(value, dict):
        return {k: v if k in AS_WRITTEN and isinstance(v, str) else _replaced(v, pattern, names) for k, v in value.items()}
    return [_replaced(one, pattern, names) for one in value] if isinstance(value, list | tuple) else value


def readable(report: Report) -> Report:
    """``report`` with brief names."""
    return with_brief_names(report, long_names(report))
