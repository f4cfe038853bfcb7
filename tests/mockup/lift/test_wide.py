"""AVX-512 code lifted, written as C, compiled and run beside the original: the same memory, in every layout."""

from __future__ import annotations

import ctypes
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.lifted import Item, LiftedLoop, Load
from layout_advise.mockup.lift.lift import lift
from layout_advise.tracer.code.region import CodeRange, Region
from tests.support import slower
from tests.support.compilers import HAS_AVX512, HASWELL
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import Native, rows, run_mockup, traced

pytestmark = pytest.mark.skipif(not HAS_AVX512, reason="this processor has no AVX-512 (avx512f, bw, dq, vl, cd)")
FLAGS = ("-O3", "-march=skylake-avx512", "-fno-math-errno")
WIDTHS = {"256": FLAGS, "512": (*FLAGS, "-mprefer-vector-width=512")}
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]

# arguments: doubles w, a, b, indices p below n, the number n
LOOPS = {
    "total": "double s = 0; for (long i = 0; i < n; i++) s += a[i] * b[i]; w[0] = s;",
    "when_greater": "for (long i = 0; i < n; i++) if (a[i] > 0.5) w[i] += 0.25 * b[i];",
    "moved": "for (long i = 0; i < n / 8; i++) w[8 * i] += 0.125 * w[8 * i + 1];",
    "chosen": "float *f = (float *)w; for (long i = 0; i < n; i++) f[i] = a[i] < b[i] ? (float)a[i] * 2 : (float)b[i];",
    "picked": "for (long i = 0; i < n; i++) w[i] = a[p[i]] + 1;",
    "picked_when": "for (long i = 0; i < n; i++) if (b[i] < 0.5) w[i] = a[p[i]];",
    "spread": "for (long i = 0; i < n; i++) w[p[i]] = a[i];",
    "whole": "long *q = (long *)w; for (long i = 0; i < n; i++) q[i] = (long)(a[i] * 1e6) * p[i];",
    "unsigned_whole": "unsigned long *q = (unsigned long *)w; "
    "for (long i = 0; i < n; i++) q[i] = (unsigned long)(a[i] * 1e19);",
    "unsigned_words": "unsigned *q = (unsigned *)w; "
    "for (long i = 0; i < n; i++) q[i] = (unsigned)(a[i] * 4e9) >> (p[i] & 31);",
    "as_double": "const unsigned long *q = (const unsigned long *)a; "
    "for (long i = 0; i < n; i++) w[i] = (double)q[i] + (double)(unsigned)p[i];",
    "least": "long m = p[0]; for (long i = 0; i < n; i++) m = p[i] < m ? p[i] : m; w[0] = (double)m;",
    "clamped": "for (long i = 0; i < n; i++) w[i] = a[i] < 0.25 ? 0.25 : a[i] > 0.75 ? b[i] : a[i];",
    "rounded": "for (long i = 0; i < n; i++) "
    "w[i] = __builtin_floor(a[i] * 9) + __builtin_ceil(b[i] * 9) + __builtin_trunc(w[i] * 9);",
    "turned": "unsigned *q = (unsigned *)w; for (long i = 0; i < n; i++) q[i] = (unsigned)p[i] << 5 | (unsigned)p[i] >> 27;",
    "narrowed": "unsigned char *q = (unsigned char *)w; for (long i = 0; i < n; i++) q[i] = (unsigned char)p[i];",
    "counted": "long k = 0; for (long i = 0; i < n; i++) k += a[i] < b[i]; w[0] = (double)k;",
    "interleaved": "for (long i = 0; i < n / 2; i++) { w[2 * i] = a[i]; w[2 * i + 1] = b[i]; }",
    "apart": "for (long i = 0; i < n / 2; i++) { w[i] = a[2 * i] - a[2 * i + 1]; }",
}  # fmt: skip
INTRINSICS = {
    "remainder": """
        for (long i = 0; i < n; i += 8) {
            __mmask8 k = n - i >= 8 ? 255 : (__mmask8)((1u << (n - i)) - 1);
            __m512d x = _mm512_maskz_loadu_pd(k, a + i);
            _mm512_mask_storeu_pd(w + i, k, _mm512_mask_add_pd(x, k & 0x5B, x, _mm512_maskz_loadu_pd(k, b + i)));
        }""",
    "scattered": """
        for (long i = 0; i + 8 <= n; i += 8) {
            __m256i at = _mm256_loadu_si256((const __m256i *)(p + i));
            __mmask8 k = _mm512_cmp_pd_mask(_mm512_loadu_pd(a + i), _mm512_set1_pd(0.5), _CMP_LT_OQ);
            _mm512_mask_i32scatter_pd(w, k, at, _mm512_mask_i32gather_pd(_mm512_loadu_pd(b + i), k, at, a, 8), 8);
        }""",
    "any_and_all": """
        long some = 0, all = 0;
        for (long i = 0; i + 16 <= n; i += 16) {
            __mmask16 k = _mm512_cmplt_epi32_mask(_mm512_loadu_si512(p + i), _mm512_set1_epi32(60));
            if (!_mm512_kortestz(k, k)) some++;
            if (_mm512_kortestc(k, k)) all += i;
        }
        w[0] = (double)some; w[1] = (double)all;""",
    "mixed": """
        for (long i = 0; i + 8 <= n; i += 8) {
            __m512i x = _mm512_loadu_si512(w + i), y = _mm512_loadu_si512(a + i), z = _mm512_loadu_si512(b + i);
            x = _mm512_ternarylogic_epi64(x, y, z, 0xD2);
            x = _mm512_permutex2var_epi64(x, _mm512_setr_epi64(0, 9, 2, 11, 4, 13, 15, 7), z);
            x = _mm512_alignr_epi64(x, _mm512_rolv_epi64(y, z), 3);
            x = _mm512_mask_sub_epi64(x, _mm512_test_epi64_mask(y, _mm512_set1_epi64(1)), x, z);
            _mm512_storeu_si512(w + i, _mm512_shuffle_i64x2(x, y, 0xD8));
        }""",
}


def source_of(body: str, include: str = "") -> str:
    return f"{include}\nvoid run(double *w, const double *a, const double *b, const int *p, long n)\n{{\n{body}\n}}\n"


KERNELS = {name: source_of(body) for name, body in LOOPS.items()} | {
    name: source_of(body, "#include <immintrin.h>") for name, body in INTRINSICS.items()
}


BUILDS = list(product(COMPILERS, WIDTHS))
TRIED = [
    pytest.param(
        name, *build, marks=[] if number % 2 == 0 and build == BUILDS[number // 2 % len(BUILDS)] else pytest.mark.slow
    )
    for number, name in enumerate(KERNELS)
    for build in BUILDS
]
"""Every second kernel by one of the builds, in turn; all by all of them in the slow tests."""


@pytest.mark.parametrize(("name", "compiler", "width"), TRIED)
def test_a_mockup_of_avx512_code_does_the_same(name: str, compiler: str, width: str, tmp_path: Path) -> None:
    native = Native(KERNELS[name], "run", tmp_path, WIDTHS[width], compiler)
    lifted = native.lifted()
    draw = np.random.default_rng(7)
    n = 117
    given = [draw.random(n + 64) for _ in range(3)]
    indices = draw.integers(0, n, n + 64, dtype=np.int32)
    work = [array.copy() for array in given]
    arguments = (*(array.ctypes.data for array in work), indices.ctypes.data, n)
    native.function(*(ctypes.c_uint64(a) for a in arguments))
    expected = [array.tobytes() for array in work]
    assert expected[0] != given[0].tobytes()

    def restore() -> None:
        for array, data in zip(work, given, strict=True):
            array[:] = data

    restore()
    trace = traced(lifted, tmp_path, arguments, ())
    restore()
    # with the producer's flags, and with those of a processor without AVX-512
    for flags in (WIDTHS[width], HASWELL):
        text = emit_mockup(lifted, None, trace, (), vector_bytes=32)
        run_mockup(text, tmp_path / "mockup.so", arguments, flags=flags, compiler=compiler)
        assert [array.tobytes() for array in work] == expected, flags
        restore()


PARTICLES = """
struct particle { double x, v, m, q, a, b, c, d; };
void run(struct particle *p, long n)
{
    for (long i = 0; i < n; i++) {
        p[i].x += 0.125 * p[i].v;
        if (p[i].m > 0.5)
            p[i].q *= p[i].m;
    }
}
"""


@pytest.mark.parametrize("layout", ["identity", "soa", "aosoa", "compact"])
@pytest.mark.parametrize("width", [*slower(("256",)), "512"])
def test_other_layouts_of_a_structure_give_the_same(width: str, layout: str, tmp_path: Path) -> None:
    work = np.random.default_rng(3).random((67, 8))
    kernel = rows(PARTICLES, work, (0, 1, 2, 3), tmp_path, WIDTHS[width])
    text = emit_mockup(kernel.lifted, kernel.layout(layout), kernel.trace, (kernel.structure,), vector_bytes=32)
    assert kernel.made_by(text, tmp_path / "mockup.so", WIDTHS[width]) == kernel.expected


def loops(items: tuple[Item, ...]) -> list[int]:
    """The number of loads in each loop."""
    return [sum(isinstance(inner, Load) for inner in item.body) for item in items if isinstance(item, LiftedLoop)]


def test_the_lanes_of_a_wide_loop_are_rolled_up(tmp_path: Path) -> None:
    """The eight numbers of four rows become the two of one."""
    work = np.random.default_rng(3).random((64, 2))
    source = "void run(double *p, long n) { for (long i = 0; i < 2 * n; i++) p[i] = p[i] * 0.5 + 1; }"
    kernel = rows(source, work, (0,), tmp_path, WIDTHS["512"])
    native = Native(source, "run", tmp_path, WIDTHS["512"])
    assert loops(native.lifted().body) == [8]
    assert loops(kernel.lifted.body) == [2]


def test_a_mask_from_before_the_code_is_refused_by_name(tmp_path: Path) -> None:
    code = bytes.fromhex("62f1ed495801c3")  # vaddpd zmm0{k1}, zmm2, [rcx]
    region = Region("f", "function", 0x1000, (CodeRange(0x1000, code),), "", 0)
    with pytest.raises(NotLiftedError, match="mask register"):
        lift(region, result="float")
