"""Drawings of a report as part of a page. A report may come from somebody else: what is no plain drawing is left out, so
that nothing in it runs or is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from markupsafe import Markup, escape

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_ELEMENTS = frozenset(("svg", "g", "title", "text", "rect", "path", "line", "circle"))
_ATTRIBUTES = frozenset(
    ("viewBox", "width", "height", "role", "font-family", "font-size", "font-weight", "text-anchor", "x", "y", "x1", "y1",
     "x2", "y2", "cx", "cy", "r", "rx", "d", "fill", "stroke", "stroke-width", "stroke-dasharray", "opacity")
)  # fmt: skip
_PLAIN = re.compile(r"[\w\s.,#%+-]*")
_STYLE = "max-width:100%;height:auto"
_INKS = ("#222", "#333", "#555", "#666")
_DEEPEST = 6


def drawing(svg: str) -> Markup:
    """A drawing as part of the page, its text in the page's ink (a dark page has light text). Empty for what is no drawing
    of ours: other elements, attributes or values than they have."""
    if not svg.lstrip().startswith("<svg") or "<!" in svg or "<?" in svg:
        return Markup("")
    try:
        return Markup("".join(_written(ElementTree.fromstring(svg), 0)))
    except (ElementTree.ParseError, ValueError):
        return Markup("")


def _written(node: ElementTree.Element, depth: int) -> Iterator[str]:
    name = node.tag.removeprefix(_NAMESPACE)
    if name not in _ELEMENTS or depth > _DEEPEST:
        raise ValueError(name)
    yield f"<{name}"
    for key, value in node.attrib.items():
        if key == "style" and value == _STYLE:
            yield f' style="{_STYLE}"'
        elif key in _ATTRIBUTES and _PLAIN.fullmatch(value):
            yield f' {key}="{"currentColor" if value in _INKS else value}"'
        else:
            raise ValueError(key)
    yield f">{escape(node.text or '')}"
    for child in node:
        yield from _written(child, depth + 1)
        yield str(escape(child.tail or ""))
    yield f"</{name}>"
