"""The notebook in docs/ runs from its first cell to its last one, on a run directory that it makes itself."""

from __future__ import annotations

import ast
from typing import Any

import nbclient
import nbformat
import pytest

from tests.support.paths import ROOT

DOCS = ROOT / "docs"


def notebook() -> Any:
    return nbformat.read(DOCS / "algebra.ipynb", as_version=4)


def test_it_is_committed_without_outputs() -> None:
    for cell in notebook().cells:
        if cell.cell_type == "code":
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of Jupyter's machinery; the kernel is a process of its own
def test_it_runs() -> None:
    done = notebook()
    client = nbclient.NotebookClient(done, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(DOCS)}})
    client.execute()
    printed = [text_of(cell) for cell in done.cells if cell.cell_type == "code"]
    whole = "\n".join(printed)
    assert "A_5000 ⊗ S_{3:10:3;10}, 15,000 of 50,000 places of 8 bytes accessed" in whole
    assert "verified" in whole
    assert "A_625 ⊗ A_3 ⊗ A_8" in whole
    assert "48 does not divide 5000; pad to 5040 first (rule 8)" in whole
    assert "the same bytes; original" in whole
    assert "leaves the bytes of the original; its buffers: [" in whole
    assert whole.count("<svg") >= 5
    assert r"A_{5000} \otimes S_" in whole
