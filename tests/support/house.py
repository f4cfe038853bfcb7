"""The checkout's Python code as data: its modules, what they import, and what they define."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Set
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import PurePosixPath

import networkx as nx

from tests.support.paths import ROOT

PRODUCT = ("layoutalgebra", "tracer", "mockup", "reports", "layout_advise")
"""The product's top-level folders."""
TESTS = "tests"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class SourceModule:
    """One Python file: its import name, its path within the checkout, and its parsed text."""

    name: str
    path: PurePosixPath
    tree: ast.Module

    @property
    def top(self) -> str:
        """The top-level folder."""
        return self.path.parts[0]

    @property
    def folder(self) -> PurePosixPath:
        """The folder that it lies in."""
        return self.path.parent

    @property
    def room(self) -> str | None:
        """The folder below the top-level one: ``emit`` of ``mockup/emit/packs/find.py``; None where there is none."""
        return self.path.parts[1] if len(self.path.parts) > 2 else None

    @property
    def is_init(self) -> bool:
        """Whether it is a folder's ``__init__.py``."""
        return self.path.name == "__init__.py"

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """All functions and methods, nested ones too."""
        return tuple(node for node in ast.walk(self.tree) if isinstance(node, Function))

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        """All classes, nested ones too."""
        return tuple(node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))

    @cached_property
    def docstrings(self) -> tuple[tuple[str, str], ...]:
        """Name and docstring of the module, its classes and its functions, where they have one."""
        nodes = (self.tree, *self.classes, *self.functions)
        texts = ((getattr(node, "name", self.name), ast.get_docstring(node)) for node in nodes)
        return tuple((name, text) for name, text in texts if text)


@cache
def modules() -> tuple[SourceModule, ...]:
    """The Python files of the product and its tests, in the order of their paths."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    paths = [PurePosixPath(line) for line in sorted(set(listed))]
    return tuple(_parsed(path) for path in paths if path.parts[0] in (*PRODUCT, TESTS) and (ROOT / path).exists())


@cache
def product_modules() -> tuple[SourceModule, ...]:
    """The Python files of the product."""
    return tuple(module for module in modules() if module.top in PRODUCT)


@cache
def import_graph() -> nx.DiGraph[str]:
    """An arrow from each module to each one that it imports, wherever in the file, by import names."""
    known = {module.name for module in modules()}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(sorted(known))
    for module in modules():
        graph.add_edges_from((module.name, name) for name in sorted(_imported(module, known) - {module.name}))
    return graph


@cache
def room_graph(top: str) -> nx.DiGraph[str]:
    """An arrow from each room of a top-level folder to each other one there that its modules import."""
    homes = {module.name: module.room for module in modules() if module.top == top and module.room is not None}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(sorted({room for room in homes.values() if room is not None}))
    for importer, target in import_graph().edges:
        source, destination = homes.get(importer), homes.get(target)
        if source is not None and destination is not None and source != destination:
            graph.add_edge(source, destination)
    return graph


@cache
def top_graph() -> nx.DiGraph[str]:
    """An arrow from each top-level folder of the product to each other one that it imports, but for the errors' module."""
    homes = {module.name: module.top for module in product_modules()}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(PRODUCT)
    for importer, target in import_graph().edges:
        source, destination = homes.get(importer), homes.get(target)
        if source and destination and source != destination and target not in ("layout_advise.errors", "layout_advise"):
            graph.add_edge(source, destination)
    return graph


def circles(graph: nx.DiGraph[str]) -> list[list[str]]:
    """The sets of nodes that reach each other, each in alphabetical order."""
    return sorted(sorted(found) for found in nx.strongly_connected_components(graph) if len(found) > 1)


def _imported(module: SourceModule, known: Set[str]) -> set[str]:
    """Those of the ``known`` modules that ``module`` imports: of ``from a.b import c`` it is ``a.b.c``, if that is one, else
    ``a.b``."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update(name if name in known else node.module for name in names)
    return found & known


def _parsed(path: PurePosixPath) -> SourceModule:
    parts = path.with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    if path.parts[0] in PRODUCT and parts[0] != "layout_advise":
        parts = ("layout_advise", *parts)
    return SourceModule(".".join(parts), path, ast.parse((ROOT / path).read_text()))
