"""The tests' own rooms: what several test modules use stands in tests/support or in a conftest."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT

MODULES = sorted((ROOT / "tests").rglob("*.py"))


def imported(module: Path) -> set[str]:
    """The names of all modules that it imports, and of what it imports from them."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_test_imports_another(module: Path) -> None:
    assert [name for name in imported(module) if re.match(r"tests\.(\w+\.)*test_", name)] == []
