"""Which of two builds has the vector arithmetic of the other one."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from layout_advise.mockup.run.packed_loops import is_scalar, keeps_vectors, packed_counts
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Reference
from tests.support.run_folders import sample_trace

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


def test_an_original_without_vectors_has_none_to_lose(tmp_path: Path) -> None:
    """minisat at -O2: a form without vectors left open what 33 processes had decided."""
    scalar, vector = (built(tmp_path, name, "1.0", *flags) for name, flags in (("s", ("-fno-tree-vectorize",)), ("v", ())))
    alone, both = (ElfBinary.open_module(one).region("kernel", 0) for one in (scalar, vector))
    plain = replace(sample_trace(), references=(Reference(0, 0x10, 0, "read", 8),))
    wide = replace(plain, references=(*plain.references, Reference(1, 0x14, 0, "write", 16)))
    assert is_scalar(alone, plain)
    assert not is_scalar(alone, wide)  # a record that is copied whole
    assert not is_scalar(both, plain)
    assert not is_scalar(replace(alone, callees=(both,)), plain)
