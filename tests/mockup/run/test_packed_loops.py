"""Which of two builds has the vector arithmetic of the other one."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from layout_advise.mockup.run.packed_loops import keeps_vectors, packed_counts, packed_in
from layout_advise.tracer.program.binary import ElfBinary

LOOPS = """
void kernel(float *restrict a, const float *restrict b, long n, const int *restrict idx, double *restrict c)
{
    for (long i = 0; i < n; i++)
        a[i] = a[i] * 0.5f + b[i];
    for (long i = 0; i < n; i++)
        c[idx[i]] += %s;
}
"""


def built(folder: Path, name: str, term: str, *flags: str) -> Path:
    source, target = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(LOOPS % term)
    subprocess.run(["gcc", "-O3", "-shared", "-fPIC", *flags, "-o", target, source], check=True)
    return target


def test_vectors_that_another_build_has(tmp_path: Path) -> None:
    both = built(tmp_path, "vector", "1.0")
    wide = built(tmp_path, "wide", "1.0", "-mavx2")
    scalar = built(tmp_path, "scalar", "1.0", "-fno-tree-vectorize")
    assert packed_counts(scalar, "kernel") == packed_counts(both, "nothing") == ()
    (found,) = packed_counts(both, "kernel")
    assert found >= 2
    assert keeps_vectors(both, both, "kernel")
    assert keeps_vectors(wide, both, "kernel")
    assert not keeps_vectors(scalar, both, "kernel")
    assert not keeps_vectors(both, scalar, "kernel")  # there is nothing that it could lack


def test_each_loop_counts_by_itself(tmp_path: Path) -> None:
    one = built(tmp_path, "one", "1.0")
    two = built(tmp_path, "two", "1.0; for (long i = 0; i < n; i++) c[i] = c[i] / 3 + c[i] * c[i]")
    assert len(packed_counts(two, "kernel")) == len(packed_counts(one, "kernel")) + 1
    assert keeps_vectors(two, one, "kernel")
    assert not keeps_vectors(one, two, "kernel")


def test_a_region_has_the_packed_arithmetic_of_its_loops_and_its_callees(tmp_path: Path) -> None:
    vector, scalar = built(tmp_path, "v", "1.0"), built(tmp_path, "s", "1.0", "-fno-tree-vectorize")
    one, other = (ElfBinary.open_module(path).region("kernel", 0) for path in (vector, scalar))
    assert packed_in(one) == sum(packed_counts(vector, "kernel")) > 0
    assert packed_in(other) == 0
    assert packed_in(replace(other, callees=(replace(one, entry=one.entry + 1),))) == packed_in(one)
