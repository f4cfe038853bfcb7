"""A report without what is the user's own: code, arguments, paths."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

import msgspec

from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport

LEFT_OUT = "(left out)"
_FOLDERS = re.compile(r"(?<![\w./:~])~?/(?:[^\s/:\"'<>(),;]+/)+")
"""The folders of an absolute path in a text."""
_FLAG = re.compile(r"(?<!\S)-\S*/\S*")
"""A compiler's flag that names a path."""


def without_source(report: Report) -> Report:
    """``report`` without source lines, disassembly, mock-ups in C, arguments of the program and folders of paths. Names of
    functions, types, fields and files stay: the advice is about them."""
    name = PurePath(report.command[0]).name if report.command else ""
    bare = msgspec.structs.replace(
        report,
        command=(name, *((LEFT_OUT,) if len(report.command) > 1 else ())),
        started_in=None,
        hotspots=tuple(_without_code(hotspot) for hotspot in report.hotspots),
    )
    arguments = [word for word in report.command[1:] if len(word) > 2]
    return msgspec.convert(_plain(msgspec.to_builtins(bare), arguments), Report)


def _without_code(hotspot: HotspotReport) -> HotspotReport:
    replace = msgspec.structs.replace
    return replace(
        hotspot,
        source=(),
        candidates=tuple(replace(c, source="") for c in hotspot.candidates),
        not_lifted=tuple(replace(n, instruction=n.instruction.partition(" ")[0]) for n in hotspot.not_lifted),
    )


def _plain(value: Any, arguments: list[str]) -> Any:
    """The same data with no folders in any text, and no argument where it stands for itself."""
    if isinstance(value, str):
        return LEFT_OUT if value in arguments else _FOLDERS.sub("", _FLAG.sub("", value))
    if isinstance(value, dict):
        return {key: _plain(one, arguments) for key, one in value.items()}
    return [_plain(one, arguments) for one in value] if isinstance(value, list | tuple) else value
