"""OpenCL C read by libclang: kernels, records, macros, and what does not parse."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from layout_advise.errors import SourceError
from layout_advise.opencl.source.preprocess import plain
from layout_advise.opencl.source.read import read_program
from tests.support.opencl.kernels import FORCES, MANY_USES


def test_a_kernel_and_its_record() -> None:
    program = read_program(FORCES)
    (kernel,) = program.kernels
    assert (kernel.name, kernel.line) == ("forces", 5)
    assert [(p.name, p.form, p.element_bytes) for p in kernel.parameters] == [
        ("b", "buffer", 32),
        ("n", "value", 4),
        ("scale", "buffer", 4),
    ]
    (record,) = program.records
    assert (record.name, record.bytes, record.padding) == ("Body", 32, ())
    assert [(m.name, m.type, m.offset) for m in record.members][-2:] == [("m", "float", 24), ("id", "int", 28)]


def test_vectors_arrays_and_gaps() -> None:
    program = read_program(MANY_USES)
    item = next(record for record in program.records if record.name == "Item")
    assert [(m.name, m.type, m.offset, m.bytes) for m in item.members] == [
        ("a", "int", 0, 4),
        ("b", "float", 4, 4),
        ("c", "char", 8, 1),
        ("d", "float4", 16, 16),
        ("e", "short[3]", 32, 6),
        ("f", "long", 40, 8),
        ("hits", "int", 48, 4),
    ]
    assert item.padding == ((9, 7), (38, 2), (52, 12))
    assert [p.form for p in program.kernels[0].parameters] == ["buffer", "buffer", "buffer", "local", "value"]


def test_macros_of_the_build_options_are_expanded(tmp_path: Path) -> None:
    (tmp_path / "h.h").write_text("typedef struct { T a, b; } pair;\n")
    source = '#include "h.h"\n#ifdef WITH\n__kernel void k(__global pair *p) { p[0].a = LIMIT; }\n#endif\n'
    found = plain(source, f"-DT=double -D WITH -DLIMIT=3 -I {tmp_path} -cl-mad-enable")
    assert found.options == ("-cl-mad-enable",)
    assert "p[0].a = 3;" in found.text
    program = read_program(source, f"-DT=double -D WITH -DLIMIT=3 -I {tmp_path}")
    assert (program.kernels[0].line, program.records[0].bytes) == (3, 16)
    assert read_program(source, f"-DT=float -I {tmp_path}").kernels == ()


def test_headers_are_not_taken_from_where_temporary_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "h.h").write_text("typedef int T;\n")
    (tmp_path / "h.h").write_text("#error not this one\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert read_program('#include "h.h"\n__kernel void k(__global T *p) { p[0] = 1; }', f"-I {tmp_path / 'own'}").kernels


def test_a_source_that_does_not_parse_tells_its_own_line() -> None:
    with pytest.raises(SourceError, match=r"k\.cl does not parse: k\.cl:4: use of undeclared identifier 'oops'"):
        read_program("#define A 1\n\n__kernel void k(__global int *p) {\n p[0] = oops + A; }\n", "", "k.cl")
    with pytest.raises(SourceError, match=r"cannot read k\.cl: k\.cl:1:.*nothing\.h"):
        read_program('#include "nothing.h"\n', "", "k.cl")


def test_images_are_other_parameters() -> None:
    (kernel,) = read_program("__kernel void k(read_only image2d_t im, __global float *p) { p[0] = 1; }").kernels
    assert [p.form for p in kernel.parameters] == ["other", "buffer"]


def test_a_record_with_a_union_keeps_its_layout() -> None:
    source = "typedef struct { union { int a; float b; }; int c, d; } s; __kernel void k(__global s *p) { p[0].c = p[0].d; }"
    (record,) = read_program(source).records
    assert record.obstacle == "it has a union or bit fields"


def test_functions_of_the_language() -> None:
    body = """
    float4 v = vload4(0, o); vstore4(v, 1, o); prefetch(o, 4);
    int x = atomic_add(&l[0], 1) + atomic_cmpxchg(&l[1], 1, 2) + atom_add(&l[0], 1);
    float f; v.x = fract(v.y, &f) + mad(f, f, f) + clamp(f, 0.f, M_PI_F) + dot(v, v) + as_float(x) + rsqrt(f);
    double d = exp(1.0); printf("%d", x); mem_fence(CLK_GLOBAL_MEM_FENCE); int4 i = convert_int4_rte(v);
    v = shuffle(v, (uint4)(1, 0, 2, 3)); x = isnan(f) + popcount(3u); half h = vload_half(0, (__global half *)o);"""
    program = read_program(f"__kernel void k(__global float *o, __local int *l) {{ {body} }}")
    calls = [node for node in program.kernels[0].node.walk() if node.kind == "CALL_EXPR"]
    assert len(calls) > 15
    assert all(call.foreign for call in calls)
