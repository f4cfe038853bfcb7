"""The rules of the house that a machine can check."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter

import pytest

from tests.support.house import PRODUCT, SourceModule, import_graph, modules, product_modules

FLOORS = {"layoutalgebra": 0, "tracer": 1, "mockup": 2, "reports": 2, "layout_advise": 3}
"""A top-level folder may import those on its own floor (itself) and on lower ones."""
ERRORS = "layout_advise.errors"
MOST_MODULES = 15
"""Modules in a folder, its ``__init__`` not counted."""
FEW_LINES = 3
"""Lines at least of what a room of the product says of itself."""


@pytest.mark.parametrize("module", product_modules(), ids=lambda module: str(module.path))
def test_imports_point_down(module: SourceModule) -> None:
    homes = {one.name: one.top for one in product_modules()}
    for name in set(import_graph().successors(module.name)) & homes.keys() - {ERRORS}:
        home, target = module.top, homes[name]
        assert home == target or FLOORS[target] < FLOORS[home], f"{module.path} imports {name}"


def test_errors_is_a_leaf() -> None:
    assert list(import_graph().successors(ERRORS)) == []


def test_class_names_are_unique() -> None:
    names = Counter(found.name for module in product_modules() for found in module.classes)
    assert [name for name, number in names.items() if number > 1] == []


def test_folders_ship_under_one_name() -> None:
    code = "import sys, layout_advise.cli; assert not {'tracer', 'mockup', 'reports', 'layoutalgebra'} & set(sys.modules)"
    subprocess.run([sys.executable, "-P", "-c", code], cwd="/", check=True)


def test_folders_are_small() -> None:
    sizes = Counter(str(module.folder) for module in modules() if not module.is_init)
    assert {folder: size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_rooms_say_what_they_are() -> None:
    """The ``__init__`` of each folder has a docstring: a line in the tests, a few in the product."""
    silent = []
    for module in modules():
        lines = (ast.get_docstring(module.tree) or "").splitlines()
        few = FEW_LINES if module.top in PRODUCT else 1
        if module.is_init and (len([line for line in lines if line.strip()]) < few or len(" ".join(lines)) < 20):
            silent.append(str(module.path))
    assert silent == []
    packages = {module.folder for module in modules() if module.is_init}
    assert {str(module.folder) for module in modules()} - {str(folder) for folder in packages} == set()
