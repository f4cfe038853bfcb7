"""The functions that a user may mean by a name: a symbol, a source name, a demangled or a Fortran name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from layout_advise.tracer.program.symbols import Function, bare_name


def named(name: str, functions: Sequence[Function], demangled: Mapping[str, str]) -> list[Function]:
    """The functions called ``name`` in the most exact sense in which there are any; without pieces of functions."""
    for match in (_by_symbol, _by_demangled, _by_fortran):
        found = [f for f in match(name, functions, demangled) if not f.piece]
        if found:
            return found
    return []


def near_names(name: str, functions: Sequence[Function], demangled: Mapping[str, str]) -> list[str]:
    """Names of functions that look like ``name``."""
    names = {f.parent for f in functions if not f.anonymous} | {bare_name(n) for s, n in demangled.items() if n != s}
    return difflib.get_close_matches(name, sorted(names), n=4, cutoff=0.5)


def _by_symbol(name: str, functions: Sequence[Function], _: Mapping[str, str]) -> list[Function]:
    exact = [f for f in functions if f.name == name and not f.piece]
    return exact or [f for f in functions if f.parent == name]


def _by_demangled(name: str, functions: Sequence[Function], demangled: Mapping[str, str]) -> list[Function]:
    human = [(f, demangled[f.name]) for f in functions if f.name.startswith(("_Z", "_R"))]
    exact = [f for f, n in human if name in (n, n.split(" [clone")[0], bare_name(n))]
    return exact or [f for f, n in human if bare_name(n).rsplit("::", 1)[-1] == name]


def _by_fortran(name: str, functions: Sequence[Function], _: Mapping[str, str]) -> list[Function]:
    lower = name.lower()
    return [f for f in functions if f.parent == f"{lower}_" or f.parent.endswith(f"_MOD_{lower}")]
