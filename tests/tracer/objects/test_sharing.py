"""Lines that threads share, against a list of every access."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Loop, Point
from layout_advise.layoutalgebra.sets.spans import spans
from layout_advise.tracer.folding.fold import fold
from layout_advise.tracer.objects.sharing import LINE, Sharing, clipped, find_sharing
from layout_advise.tracer.trace.trace import Reference, Registers, Thread, Trace

BASE = 1 << 20


def trace_of(accesses: list[tuple[int, str, int, list[int]]]) -> Trace:
    """A trace of references (thread, kind, bytes, addresses)."""
    threads = sorted({thread for thread, *_ in accesses})
    return Trace(
        "hot._omp_fn.0",
        1,
        "clone",
        tuple(Reference(n, n, 0, kind, size, thread) for n, (thread, kind, size, _) in enumerate(accesses)),  # type: ignore[arg-type]
        tuple(fold(addresses) if addresses else None for *_, addresses in accesses),
        sum(len(addresses) for *_, addresses in accesses),
        False,
        Registers((0,) * 16, 0, 0, 0, 0),
        (),
        (),
        threads=tuple(Thread(t, 0, 0, 0, 0) for t in threads),
    )


def by_brute_force(accesses: list[tuple[int, str, int, list[int]]]) -> tuple[set[int], set[int]]:
    """Falsely and truly shared lines, byte by byte."""
    used: dict[int, set[int]] = defaultdict(set)
    wrote: dict[int, set[int]] = defaultdict(set)
    for thread, kind, size, addresses in accesses:
        for address in addresses:
            for byte in range(address, address + size):
                used[byte].add(thread)
                if kind != "read":
                    wrote[byte].add(thread)
    false, true = set[int](), set[int]()
    for line in {byte // LINE * LINE for byte in used}:
        own = range(line, line + LINE)
        threads = set().union(*(used[b] for b in own))
        if len(threads) > 1 and any(wrote[b] for b in own):
            exchanged = any(used[b] - {w} for b in own for w in wrote[b])
            (true if exchanged else false).add(line)
    return false, true


def users(accesses: list[tuple[int, str, int, list[int]]], false: set[int]) -> dict[int, int]:
    """How many of the lines each reference writes, or reads while another thread writes them."""
    touched = [{(a + k) // LINE * LINE for a in addresses for k in range(size)} for _, _, size, addresses in accesses]
    counts = {}
    for n, (thread, kind, _, _) in enumerate(accesses):
        wrote = [lines for (other, k, _, _), lines in zip(accesses, touched, strict=True) if k != "read" and other != thread]
        counts[n] = len({line for line in touched[n] & false if kind != "read" or any(line in lines for lines in wrote)})
    return {n: count for n, count in counts.items() if count}


nests = st.builds(
    lambda start, outer, inner, n, m: [BASE + start + outer * i + inner * j for i in range(n) for j in range(m)],
    st.integers(0, 300),
    st.integers(-70, 130),
    st.integers(-40, 40),
    st.integers(1, 6),
    st.integers(1, 12),
)
scattered = st.lists(st.integers(BASE, BASE + 900), min_size=1, max_size=30)
references = st.tuples(
    st.integers(0, 3), st.sampled_from(("read", "write", "both")), st.sampled_from((1, 4, 8, 32, 64)), nests | scattered
)


@settings(max_examples=150, deadline=None)
@given(st.lists(references, min_size=1, max_size=8))
def test_shared_lines_are_those_of_all_bytes(accesses: list[tuple[int, str, int, list[int]]]) -> None:
    found = find_sharing(trace_of(accesses))
    if len({thread for thread, *_ in accesses}) < 2:
        assert not found.false
        assert not found.true
        return
    assert (set(found.false), set(found.true)) == by_brute_force(accesses)
    assert list(found.false) == sorted(found.false)
    assert found.users == users(accesses, set(found.false))


@settings(max_examples=150, deadline=None)
@given(nests, st.integers(-100, 1000), st.integers(0, 400))
def test_a_clipped_nest_has_the_addresses_of_the_interval(addresses: list[int], low: int, size: int) -> None:
    low, high = BASE + low, BASE + low + size
    parts = [clipped(span, low, high) for span in spans(fold(addresses))]
    found = np.concatenate([p for p in parts if p is not None])
    assert sorted(found.tolist()) == sorted(a for a in addresses if low <= a < high)


def test_threads_that_meet_at_the_edge_of_large_parts_only_are_cheap() -> None:
    half = 1 << 27
    starts = [BASE + 8 + 8 * half * thread for thread in (0, 1)]
    small = trace_of([(thread, "write", 8, [start]) for thread, start in enumerate(starts)])
    long = tuple(FoldedStream((Loop(Affine(half), (Point(Affine(start, (8,))),)),), half) for start in starts)
    found = find_sharing(replace(small, streams=long))
    assert found == Sharing((BASE + 8 * half,), (), {0: 1, 1: 1}, ())
