"""The rules of the house that a machine can check."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from tests.support.house import SourceModule, import_graph, product_modules

FLOORS = {"layoutalgebra": 0, "tracer": 1, "mockup": 2, "reports": 2, "layout_advise": 3}
"""A top-level folder may import those on its own floor (itself) and on lower ones."""
ERRORS = "layout_advise.errors"


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
