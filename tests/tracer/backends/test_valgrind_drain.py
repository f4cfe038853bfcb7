# ruff: noqa: E501  (C source, a line a statement list)
"""What the Valgrind tool folds many rows at a time is what it records one by one, also across full buffers and uneven nests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.sets.nests import FoldedStream
from tests.support.tracing.traced_kernels import KERNELS, traced

QUICK = ("stencil", "one function from two places", "an index array", "four at a time")
O2, HASWELL = ("-O2",), ("-O3", "-march=haswell")


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        *(pytest.param(name, O2, marks=[] if name in QUICK else pytest.mark.slow) for name in KERNELS if name != "masked"),
        *(pytest.param(name, HASWELL, marks=[] if name == "masked" else pytest.mark.slow) for name in KERNELS),
    ],
)
def test_what_is_folded_is_what_was_recorded(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    source, program = tmp_path / "p.c", tmp_path / "p"
    main = "int main(void) { for (long k = 0; k < 3; k++) hot(k + 22); return 0; }\n"
    source.write_text(KERNELS[name].replace("void hot", "__attribute__((noipa)) void hot", 1) + "\n" + main)
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    raw, folded = traced(program, raw=True), traced(program, raw=False)
    assert raw.records is not None
    assert raw.accesses == folded.accesses == len(raw.records) > 2000
    numbers, addresses = raw.records >> np.uint64(48), raw.records & np.uint64((1 << 48) - 1)
    assert len(raw.references) == len(folded.references)
    for number, (one, other) in enumerate(zip(raw.references, folded.references, strict=True)):
        assert (one.pc, one.ordinal, one.kind, one.bytes) == (other.pc, other.ordinal, other.kind, other.bytes)
        expected = addresses[numbers == number].tolist()
        if not expected:
            assert other.stream is None
        elif isinstance(other.stream, FoldedStream):
            assert list(other.stream.expand()) == expected
        else:
            assert name == "an index array"
            assert other.stream == one.stream
