"""References that a mock-up executes in some copies of their code only, against the trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Point
from layout_advise.mockup.evidence.check_records import check_records
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.lift.lift import lift
from layout_advise.tracer.trace.trace import Reference, Registers, Trace
from tests.support.lifting.kernel_library import KernelLibrary

PC, TRACED = 0x4010, (64, 128, 64, 192)


def problems(thinned: bool, *made: int) -> tuple[str, ...]:
    """What is found in the records of accesses to ``made`` by the one reference of a trace."""
    points = tuple(Point(Affine(address)) for address in TRACED)
    reference, stream = Reference(0, PC, 0, "read", 8), FoldedStream(points, len(points))
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    trace = Trace("f", 1, "step", (reference,), (stream,), len(points), False, registers, (), ())
    lifted = Lifted("f", 0x4000, (), (), (), (), ((PC, 0),) if thinned else ())
    return check_records(np.array(made, np.uint64), trace, lifted)


@pytest.mark.parametrize("made", [TRACED, (64, 64, 192), (128, 192), ()])
def test_some_of_the_traced_accesses_in_their_order(made: tuple[int, ...]) -> None:
    assert problems(True, *made) == ()
    assert bool(problems(False, *made)) is (made != TRACED)


@pytest.mark.parametrize("made", [(64, 256), (192, 64), (128, 128), (*TRACED, 64)])
def test_others_are_refused(made: tuple[int, ...]) -> None:
    assert len(problems(True, *made)) == 1


@pytest.mark.parametrize("flags", [("-O1",), ("-O2", "-fno-tree-vectorize")])
def test_a_callee_of_which_one_call_uses_less(flags: tuple[str, ...], tmp_path: Path) -> None:
    """It is inlined twice; only the first call uses the second value that it loads."""
    library = KernelLibrary("thinned", tmp_path, "gcc", *flags)
    found = lift(library.region("uses_one_of_two"), result="none")
    start, code = library.places["helper_two"]
    ((pc, _),) = found.thinned
    assert library.base + start <= pc < library.base + start + len(code)
    assert (pc, 0) not in {(at, operand) for at, operand, _ in found.skipped}
    assert lift(library.region("calls_helper"), result="none").thinned == ()
