"""The bounds of the house: lengths of functions, directions of imports, wording of docstrings, current pages."""

from __future__ import annotations

import re
from collections import Counter

import networkx as nx
import pytest

from tests.support.draw_rooms import DRAWING, svg
from tests.support.house import PRODUCT, TESTS, circles, import_graph, modules, product_modules, room_graph
from tests.support.paths import ROOT

LONG_LINES = 40
LONG_PART = 0.005
"""The part of all functions that may have more than ``LONG_LINES`` lines."""
QUESTIONS = ("What", "Which", "Whether", "Where", "Who")
QUESTION_PART = 0.02
"""The part of all docstrings that may open with one of ``QUESTIONS``."""
STAGES = ("choose", "observe", "propose", "build", "verify", "measure", "decide", "describe")
"""The rooms of ``layout_advise/`` in the order of the road."""


def test_functions_are_short() -> None:
    lengths = [
        ((function.end_lineno or function.lineno) - function.lineno + 1, f"{module.path}:{function.lineno} {function.name}")
        for module in product_modules()
        for function in module.functions
    ]
    long = sorted((found for found in lengths if found[0] > LONG_LINES), reverse=True)
    assert len(long) <= LONG_PART * len(lengths), long


def test_no_imports_run_in_circles() -> None:
    """Imports within functions and those for type checking count too."""
    assert circles(import_graph()) == []


@pytest.mark.parametrize("top", PRODUCT)
def test_no_rooms_run_in_circles(top: str) -> None:
    assert circles(room_graph(top)) == []


def test_the_road_goes_one_way() -> None:
    """A stage reaches no later one, also not through the modules beside the rooms."""
    graph = import_graph()
    homes = {m.name: STAGES.index(m.room) for m in product_modules() if m.top == "layout_advise" and m.room in STAGES}
    back: Counter[str] = Counter()
    for name, stage in homes.items():
        later = {homes[found] for found in nx.descendants(graph, name) if homes.get(found, -1) > stage}
        back.update(f"{STAGES[stage]} -> {STAGES[found]}" for found in later)
    assert back == {}


def test_docstrings_say_what_a_thing_is() -> None:
    texts = [(module.path, name, text) for module in product_modules() for name, text in module.docstrings]
    asking = [(str(path), name) for path, name, text in texts if text.split()[0].strip(":,.") in QUESTIONS]
    assert len(asking) <= QUESTION_PART * len(texts), (len(asking), len(texts), Counter(path for path, _ in asking))


def test_no_test_imports_another_test() -> None:
    tests = {module.name for module in modules() if module.path.name.startswith(("test_", "conftest"))}
    assert sorted((name, found) for name in tests for found in import_graph().successors(name) if found in tests) == []


def test_rooms_name_their_modules() -> None:
    """The ``__init__`` of a room names each of its modules, so that one finds the way."""
    texts = {module.folder: dict(module.docstrings).get(module.name, "") for module in product_modules() if module.is_init}
    unnamed = [
        str(module.path)
        for module in product_modules()
        if not module.is_init
        and not module.path.stem.startswith("_")
        and f"``{module.path.stem}``" not in texts[module.folder]
    ]
    assert unnamed == []


def test_pages_name_paths_that_exist() -> None:
    """Files and folders of the product and its tests, in the documentation and in docstrings."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    texts = [(page.name, page.read_text()) for page in pages]
    texts += [(str(module.path), text) for module in product_modules() for _, text in module.docstrings]
    tops = "|".join((*PRODUCT, TESTS, "benchmarks", "examples", "scripts"))
    named = re.compile(rf"`((?:{tops})/[\w./-]+)`")
    missing = [(where, path) for where, text in texts for path in named.findall(text) if not (ROOT / path).exists()]
    assert missing == []


def test_the_drawing_is_current() -> None:
    assert DRAWING.read_text() == svg(), "python -m tests.support.draw_rooms"
