"""What is compared where threads share work out or add up, without running any."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.mockup.evidence.binding import accesses
from layout_advise.mockup.evidence.check_records import check_shared
from layout_advise.mockup.ir.lifted import Atomic, Imm, Item, Lifted, LiftedLoop, Linear, Load, Origin, RuntimeCall, Val
from layout_advise.mockup.machine.openmp_runtime import ROUTINES, is_dynamic, refusal_remark, retried
from layout_advise.tracer.trace.trace import Thread
from layout_advise.verify.order_dependent_sums import SharedSum, allowed, farthest, order_dependent
from tests.support.openmp.road import trace_of_threads
from tests.support.openmp.sync_programs import DETERMINISTIC, KINDS, ROUNDED, build, lifted_region

LOAD, SWAP = 0x100, 0x200


def region(*more: Item) -> Lifted:
    """A loop that loads, a compare-and-swap in one without end, and whatever else."""
    value, index = Val(1, "i64"), Val(2, "i64")
    load = Load(value, Linear(0, ((index, 8),)), Origin(LOAD))
    swap = Atomic("i64", "cas", Linear(64), (Imm("i64", 0), value), Origin(SWAP))
    return Lifted(
        "hot", 0, (), (), (LiftedLoop(index, Imm("i64", 4), (load,), 0), LiftedLoop(Val(3, "i64"), None, (swap,), 0), *more)
    )


def test_in_frames_it_does_not_matter_whose_it_is() -> None:
    trace = trace_of_threads([{LOAD: [0x1010, 0x9000]}, {LOAD: [0x3010, 0x3010]}])
    frames = tuple(Thread(n, 0, 0x1040 + 0x2000 * n, 0, 0x1000 + 0x2000 * n) for n in range(2))
    alone = [replace(trace, threads=frames).of_thread(thread) for thread in frames]

    def found(*addresses: int) -> int:
        return len(check_shared(np.array(addresses, np.uint64), alone, region()))

    assert found(0x3010, 0x9000, 0x1010, 0x1010) == 0
    assert found(0x3018, 0x9000, 0x1010, 0x1010) == 1  # elsewhere in a frame
    assert found(0x3010, 0x9008, 0x1010, 0x1010) == 1  # not in one
    assert found(0x3010, 0x3010, 0x1010, 0x1010) == 1


def problems(traced: Sequence[dict[int, list[int]]], made: dict[int, list[int]]) -> tuple[str, ...]:
    """What the records ``made`` (addresses by pc) have against the trace."""
    trace = trace_of_threads(traced)
    sites = {pc: k for k, pc in enumerate(traced[0])}
    words = [address | sites[pc] << 48 for pc, addresses in made.items() for address in addresses]
    alone = [trace.of_thread(thread) for thread in trace.threads]
    return check_shared(np.array(words, np.uint64), alone, region())


@given(st.lists(st.integers(1, 1 << 40), min_size=1, max_size=30), st.integers(0, 30), st.randoms())
def test_any_sharing_out_of_the_same_accesses_is_the_same(addresses: list[int], cut: int, random: object) -> None:
    made = list(addresses)
    random.shuffle(made)  # type: ignore[attr-defined]
    traced = [{LOAD: addresses[:cut], SWAP: [64]}, {LOAD: addresses[cut:], SWAP: [64]}]
    assert problems(traced, {LOAD: made, SWAP: [64, 64]}) == ()
    assert problems(traced, {LOAD: made, SWAP: [64] * 5}) == ()  # tried again
    assert len(problems(traced, {LOAD: made, SWAP: [64, 72]})) == 1
    assert len(problems(traced, {LOAD: [*made, made[0]], SWAP: [64, 64]})) == 1
    assert len(problems(traced, {LOAD: [made[0] + 1, *made[1:]], SWAP: [64, 64]})) == 1


def test_what_is_tried_again_and_what_is_shared_out() -> None:
    assert retried(region().body) == {(SWAP, 0)}
    anew = ("GOMP_loop_dynamic_next", "GOMP_loop_ull_guided_start", "GOMP_single_start", "GOMP_sections_next")
    for name in (*anew, "GOMP_loop_static_next", "GOMP_barrier"):
        assert name in ROUTINES
        assert not refusal_remark(name)
        inner = RuntimeCall(name, (), 0, Origin(0))
        assert is_dynamic(region(LiftedLoop(Val(9, "i64"), None, (inner,), 0)).body) == (name in anew)


def memory(numbers: Sequence[float], kind: str) -> bytes:
    return struct.pack(f"<{len(numbers)}{kind}", *numbers)


@given(st.floats(allow_nan=False, allow_infinity=False, max_value=1e300), st.integers(0, 40))
def test_distance_of_sums_is_the_number_of_floats_between(value: float, steps: int) -> None:
    other = value
    for _ in range(steps):
        other = math.nextafter(other, math.inf)
    one, two = memory([1.0, value], "d"), memory([1.0, other], "d")
    sums = [SharedSum(0, 8), SharedSum(8, 8)]
    assert farthest(sums, lambda a, n: one[a : a + n], lambda a, n: two[a : a + n]) == steps
    assert farthest([SharedSum(4, 4)], lambda a, n: memory([0, -0.0], "f")[a : a + n], lambda a, n: bytes(n)) == 0


def test_more_is_allowed_where_the_original_differs_more_or_the_parts_do() -> None:
    trace = trace_of_threads([{LOAD: [8] * 450, SWAP: [64]}, {LOAD: [8] * 450, SWAP: [64]}])
    assert allowed(0, region(), trace) == 8
    assert allowed(10, region(), trace) == 80
    assert allowed(0, region(RuntimeCall("GOMP_loop_dynamic_next", (), 2, Origin(0))), trace) == 8 + 30


@pytest.mark.parametrize("name", ROUNDED)
def test_sums_of_floats_depend_on_the_order(tmp_path: Path, name: str) -> None:
    made = lifted_region(build(tmp_path, ROUNDED[name]))
    trace = trace_of_threads([{access.origin.pc: [4096] for access in accesses(made.body)}])
    assert order_dependent(made, trace) == (SharedSum(4096, 8),)


@pytest.mark.parametrize("name", KINDS)
def test_integers_and_extremes_do_not(tmp_path: Path, name: str) -> None:
    made = lifted_region(build(tmp_path, DETERMINISTIC[name]))
    trace = trace_of_threads([{access.origin.pc: [4096] for access in accesses(made.body)}])
    assert order_dependent(made, trace) == ()
