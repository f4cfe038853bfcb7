"""Numbers of 80 bits (``long double``) on the x87 stack: what is lifted leaves the bytes that the compiled function does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import NotLiftedError
from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.mockup.lift.lift import lift
from layout_advise.tracer.program.binary import ElfBinary
from tests.support import slower
from tests.support.compilers import needs_clang
from tests.support.mockups.case import FLAGS, Case, compare, f64_fields
from tests.support.mockups.native import candidate, relayout

HEAD = "struct p { double a, b, c, d, out, spare[3]; };\n"
ARITHMETIC = """
void kernel(struct p *p, const float *f, const int *k, const short *h, const long *l, long n)
{
    long double sum = 1;
    for (long i = 0; i < n; i++) {
        long double x = p[i].a;
        sum += x * p[i].b - f[i];
        sum = k[i] - sum / (x + h[i]);
        x = p[i].c / sum + (long double)l[i] * 3;
        p[i].d = (double)(x - sum * sum);
        p[i].out = -sum - (float)(x * 0.5L);
    }
}"""
CHOSEN = """
void kernel(struct p *p, long n)
{
    long double most = 0, least = 1e30L, all = 0;
    for (long i = 0; i < n; i++) {
        long double x = p[i].a * (long double)p[i].b, size = __builtin_fabsl(x - p[i].c);
        most = size > most ? size : most;
        least = x < least ? x : least;
        if (size <= p[i].d)
            all += __builtin_sqrtl(size);
        else if (x != x)
            all = 0;
        p[i].out = (double)(all + (x == size));
    }
    p[0].d = (double)most;
    p[1].d = (double)least;
}"""
SPILLED = """
void kernel(struct p *p, long n)
{
    long double s0 = p[0].d, s1 = p[1].d, s2 = p[2].d, s3 = p[3].d, s4 = p[4].d, s5 = p[5].d, s6 = p[6].d, s7 = p[7].d;
    long double s8 = p[8].d, s9 = p[9].d;
    for (long i = 0; i < n; i++) {
        long double x = p[i].a, y = p[i].b;
        s0 += x; s1 += y; s2 += x * y; s3 -= x / y; s4 += x * x; s5 += y * y; s6 = x - s6; s7 = y - s7;
        s8 += s0 * x; s9 += s1 * y;
        p[i].out = (double)(s3 + s4 * s5 + s8 - s9 * s2);
    }
    p[0].d = (double)s0; p[1].d = (double)s6; p[2].d = (double)s7; p[3].d = (double)s8; p[4].d = (double)s9;
}"""
COUNT = 37


def prepared(source: str, flags: tuple[str, ...], where: Path, compiler: str = "gcc") -> tuple[Case, Structure]:
    case = Case(HEAD + source, "kernel", (*flags, "-fno-math-errno"), where, compiler)
    random = np.random.default_rng(3)
    data = random.standard_normal((COUNT, 8))
    small = [random.standard_normal(COUNT).astype(np.float32)]
    small += [random.integers(1, 1000, COUNT).astype(kind) for kind in (np.int32, np.int16, np.int64)]
    case.arrays = [data, *small]
    case.integers = [a.ctypes.data for a in case.arrays] if source is ARITHMETIC else [data.ctypes.data]
    case.integers.append(COUNT)
    fields = f64_fields(*((name, 8 * k) for k, name in enumerate(("a", "b", "c", "d", "out"))))
    shape = Structure("s0", "p", data.ctypes.data, data.nbytes, (Dim(COUNT, 64),), fields)
    case.structures = (shape,)
    case.prepare()
    return case, shape


@pytest.mark.parametrize("flags", [FLAGS["O2"], ("-O1",), *slower((FLAGS["O3-avx2"],))], ids=["O2", "O1", "O3-avx2"])
@pytest.mark.parametrize("source", [ARITHMETIC, CHOSEN, SPILLED], ids=["arithmetic", "chosen", "spilled"])
def test_long_doubles_are_what_they_are_in_the_program(source: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    case, shape = prepared(source, flags, tmp_path)
    compare(case, candidate(relayout(shape, "soa")), "plain", "restrict")


@needs_clang
@pytest.mark.parametrize("source", [ARITHMETIC, CHOSEN], ids=["arithmetic", "chosen"])
def test_those_of_clang(source: str, tmp_path: Path) -> None:
    case, shape = prepared(source, FLAGS["O2"], tmp_path, "clang")
    compare(case, candidate(relayout(shape, "soa")), "plain")


REFUSED = {
    "result": (
        "long double kernel(const double *x) { return (long double)x[0] * x[1]; }",
        "leaves a result on the x87 stack",
    ),
    "argument": ("void kernel(double *x, long double y) { x[0] = (double)(y * x[1]); }", "a number of 80 bits in memory"),
    "array": ("void kernel(long double *x) { x[0] += x[1]; }", "a number of 80 bits in memory"),
    "integer": ("long kernel(const double *x) { return (long)((long double)x[0] * x[1]); }", "x87"),
    "library": ("long double sinl(long double); void kernel(double *x) { x[0] = sinl(x[1]); }", "x87 stack"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_kept_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    text, why = REFUSED[name]
    (tmp_path / "x.c").write_text(text)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", "x.so", "x.c", "-lm"], check=True, cwd=tmp_path)
    with pytest.raises(NotLiftedError, match=why):
        lift(ElfBinary.open_module(tmp_path / "x.so").region("kernel", 0), opaque=True)
