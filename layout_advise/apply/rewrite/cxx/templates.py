"""Templates of C++ that a package holds beside its modules."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def templates(package: str) -> Environment:
    """The templates of ``package``; a name that one of them is not given is an error, and text stays as it is."""
    return Environment(
        loader=PackageLoader(package, "."), undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True
    )
