"""Control characters as text: what a program, a source or a foreign report is called must not steer a terminal."""

from __future__ import annotations

import re

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""All of ASCII's and Latin-1's control characters but the tabulator and the line feed, those that turn the direction of
writing or end a line, and the bytes of file names that are not UTF-8 (lone surrogates), which no encoding has."""


def visible(text: str) -> str:
    r"""``text`` with every control character spelled out, as ``\x1b``; the tabulator and the line feed stay. In a string of
    JSON, which has no raw ones below the blank, the others keep their meaning (``\u009b``)."""
    return _STEERING.sub(lambda found: _spelled(ord(found[0])), text)


def _spelled(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"
