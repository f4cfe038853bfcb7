"""A structure with what several calls do to it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from layout_advise.layoutalgebra.derive.structure import Dim
from layout_advise.observe.observe import Observation, observe, united
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.park import park

PROGRAM = """#include <stdlib.h>
struct px { float r, g, b, a; };
__attribute__((noinline)) void smooth(struct px *w, int rows, int cols, int blue) {
    for (int j = 0; j < cols; j++)
        for (int i = 1; i < rows; i++) {
            struct px *p = w + (long)i * cols + j;
            p->r += p[-cols].g;
            if (blue) p->b = 0;
        }
}
int main(void) {
    struct px *w = calloc(4096, sizeof *w);
    for (int k = 0; k < 9; k++) smooth(w, 20, 30 + k % 3, k == 5);
    return w[7].r > 1e9;
}
"""


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Observation]:
    """Calls 3 to 6, as if each were by itself: rows of 32, 30, 31 and 32; the last one uses a third field."""
    folder = tmp_path_factory.mktemp("workspace")
    program: Path = folder / "smooth"
    (folder / "smooth.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-o", program, folder / "smooth.c"], check=True)
    binary = ElfBinary.open(program)
    function = binary.find("smooth")
    entry = Entry(program, function.start, binary.read(function.start, function.size), "smooth")
    seen = []
    for call in (3, 4, 5, 6):
        with park([str(program)], entry, call, timeout=60) as process:
            region = binary.region(function, process.load_base)
            seen.append(observe(process, binary, region, call, 1 << 20, folder))
    return seen


def test_a_workspace_has_the_sizes_of_the_call_that_is_studied(calls: Sequence[Observation]) -> None:
    """The rows were those of the other call, and every layout that tells rows was rejected at both."""
    first, second, third, _ = calls
    (mine,) = first.structures
    assert mine.dims == (Dim(4096 // 32, 512), Dim(32, 16))
    assert united(first, (), [second, third]).structures == (mine,)
    (there,) = second.structures
    assert united(second, (), [first]).structures == (there,)
    assert there.dims[1] == Dim(30, 16)


def test_fields_that_only_another_call_uses_are_known(calls: Sequence[Observation]) -> None:
    first, _, _, last = calls
    (one,) = united(first, (), [last]).structures
    assert [f.name for f in one.fields] == ["r", "g", "b"]
    assert one.dims[1] == Dim(32, 16)
