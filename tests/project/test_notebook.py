"""The notebooks in docs/ run from their first cell to their last one, on run directories that they make themselves."""

from __future__ import annotations

import ast
from typing import Any

import nbclient
import nbformat
import pytest

from tests.support.paths import ROOT

DOCS = ROOT / "docs"


def notebook(name: str) -> Any:
    return nbformat.read(DOCS / name, as_version=4)


@pytest.mark.parametrize("name", sorted(file.name for file in DOCS.glob("*.ipynb")))
def test_they_are_committed_without_outputs(name: str) -> None:
    for cell in notebook(name).cells:
        if cell.cell_type == "code":
            if not cell.source.startswith("%"):
                ast.parse(cell.source)
            assert not cell.outputs
            assert cell.execution_count is None


def text_of(cell: Any) -> str:
    """All that a cell printed, and its values as text and drawings."""
    found = []
    for output in cell.outputs:
        found.append(output.get("text", ""))
        found.extend(str(value) for value in output.get("data", {}).values())
    return "\n".join(found)


def printed_by(name: str) -> str:
    """All that a notebook prints when its cells are run."""
    done = notebook(name)
    client = nbclient.NotebookClient(done, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(DOCS)}})
    client.execute()
    return "\n".join(text_of(cell) for cell in done.cells if cell.cell_type == "code")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of Jupyter's machinery; the kernel is a process of its own
def test_the_algebra_s_runs() -> None:
    whole = printed_by("algebra.ipynb")
    assert "A_5000 ⊗ S_{3:10:3;10}, 15,000 of 50,000 places of 8 bytes accessed" in whole
    assert "verified" in whole
    assert "A_625 ⊗ A_3 ⊗ A_8" in whole
    assert "48 does not divide 5000; pad to 5040 first (rule 8)" in whole
    assert "the same bytes; original" in whole
    assert "leaves the bytes of the original; its buffers: [" in whole
    assert whole.count("<svg") >= 5
    assert r"A_{5000} \otimes S_" in whole


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_that_of_a_run_runs() -> None:
    whole = printed_by("explore.ipynb")
    assert "<1 regions: update_pressure>" in whole
    assert "1 300" not in whole  # the size that the notebook asks for
    assert "20 000 × particle of 80 bytes" in whole
    assert "double *p_vx = malloc(20000 * sizeof *p_vx);" in whole
    assert "SelectionSlider" in whole or "VBox" in whole
    assert "on NumPy data here: " in whole
    assert whole.count("<iframe srcdoc=") == 2
    assert "<cell" not in whole
    assert "cell.layout: " in whole


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_that_of_the_papers_layouts_runs() -> None:
    whole = printed_by("figures.ipynb")
    assert "A_4 ⊗ A_2 ⊗ A_4" in whole
    assert "(S_{0;2} ⊗ A_256 ⊗ A_2) ⊕ (S_{1;2} ⊗ A_256 ⊗ A_2) - 1024 places instead of 2048" in whole
    assert "refused: rule 7 does not apply at factor 0" in whole
    assert "rule 5 does not apply at factor 0: 4 does not divide 30; pad to 32 first (rule 8)" in whole
    assert "S_{0,2;3} ⊗ S_{1;2} → S_{1,5;6}" in whole
    assert whole.count("<svg") >= 5
