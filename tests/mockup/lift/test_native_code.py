"""What calls that stay calls run of the traced code: no mock-up makes its accesses."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Point
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.evidence.check_records import check_records
from layout_advise.mockup.evidence.kept_calls import kept_calls
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.lift import inline_calls
from layout_advise.mockup.lift.lift import lift
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Reference, Registers, Trace

SOURCE = r"""
__attribute__((noipa)) double inner(const double *x) { return x[0] * x[1]; }
__attribute__((noipa)) double odd(const double *x)
{ double y = x[2]; __asm__("fldl %1; fsin; fstpl %0" : "=m"(y) : "m"(x[3])); return inner(x) + y; }
__attribute__((noipa)) double plain(const double *x) { return x[4]; }
double calls(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += odd(x) + plain(x); return s; }
__attribute__((noipa)) double around(const double *x) { return plain(x) + x[1]; }
double nested(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += around(x); return s; }
double many(const double *x) { return around(x) + around(x) + plain(x); }
__attribute__((noipa)) double onward(const double *x) { return plain(x + 1); }
double ends(const double *x) { return onward(x) * 2; }
void moves(long *to, const long *from, long n)
{ __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) : : "memory"); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ElfBinary:
    path = tmp_path_factory.mktemp("native") / "lib.so"
    command = ["gcc", "-O2", "-g", "-shared", "-fPIC", "-fvisibility=hidden", "-x", "c", "-", "-o", str(path)]
    subprocess.run(command, input=SOURCE.encode(), check=True)
    return ElfBinary.open_module(path)


def region(library: ElfBinary, name: str) -> Region:
    return library.region(library.find(name), 0, callees=True)


def test_a_callee_that_cannot_be_lifted_runs_with_all_it_calls(library: ElfBinary) -> None:
    """``odd`` asks for a sine of 80 bits: its call stays one. ``plain`` is lifted with the region."""
    lifted = lift(region(library, "calls"), opaque=True)
    for name, natively in (("odd", True), ("inner", True), ("plain", False), ("calls", False)):
        function = library.find(name)
        assert lifted.runs_natively(function.start) is natively, name
        assert lifted.runs_natively(function.start + function.size - 1) is natively, name


def test_what_a_callee_calls_is_lifted_with_it(library: ElfBinary) -> None:
    for name in ("nested", "ends"):
        for calls in (False, True):
            assert not kept_calls(lift(region(library, name), opaque=calls)), name


def test_with_many_blocks_only_what_the_region_itself_calls_is_lifted(
    library: ElfBinary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline_calls, "DEEP_BLOCKS", 0)
    assert [call.function for call in kept_calls(lift(region(library, "ends"), opaque=True))] == ["plain"]
    lifted = lift(region(library, "many"), opaque=True)
    assert [call.function for call in kept_calls(lifted)] == ["plain"]
    assert lifted.runs_natively(library.find("plain").start)
    assert not lifted.runs_natively(library.find("around").start)


def test_a_string_operation_that_stays_one_is_its_instruction(library: ElfBinary) -> None:
    lifted = lift(region(library, "moves"), opaque=True, result="none")
    ((start, end),) = lifted.native
    assert end == start + 1


def test_what_runs_natively_is_not_missed_in_the_records() -> None:
    points = tuple(Point(Affine(address)) for address in (64, 128))
    trace = Trace(
        "f", 1, "step", (Reference(0, 0x4010, 0, "read", 8),), (FoldedStream(points, 2),), 2, False,
        Registers((0,) * 16, 0, 0, 0, 0), (), (),
    )  # fmt: skip
    lifted = Lifted("f", 0x4000, (), (), ())
    assert check_records(np.array([], np.uint64), trace, lifted)
    native = replace(lifted, native=((0x4000, 0x4020),))
    assert not check_records(np.array([], np.uint64), trace, native)
    structure = Structure("s0", "p", 0, 256, (Dim(32, 8),), (Field("x", 0, 8, "double", 2, 0),))
    assert bind(native, trace, (structure,)).impossible["s0"].endswith("is made by a call that stays a call")
    assert bind(lifted, trace, (structure,)).impossible["s0"].endswith("is not in the lifted code")
