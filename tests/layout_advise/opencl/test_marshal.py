"""Data in other layouts: index by index against the formula, and back."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.explore.partitions import partition
from layout_advise.opencl.rewrite.layouts import BufferLayout, layout
from layout_advise.opencl.rewrite.marshal import gathered, scattered, without_padding
from layout_advise.opencl.source.kernels import BufferRecord
from layout_advise.opencl.source.read import read_program
from tests.support.opencl.kernels import MANY_USES


@cache
def record() -> BufferRecord:
    return next(one for one in read_program(MANY_USES).records if one.name == "Item")


@st.composite
def layouts(draw: st.DrawFn) -> BufferLayout:
    count = len(record().members)
    homes = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    groups = partition([[k for k in range(count) if homes[k] == home] for home in range(4)])
    return layout(record(), groups, [draw(st.sampled_from((1, 2, 3, 8, 64))) for _ in groups])


@given(layouts(), st.integers(0, 70), st.integers(0, 9))
def test_each_member_lies_where_the_formula_says(one: BufferLayout, count: int, tail: int) -> None:
    data = np.random.default_rng(count).integers(0, 256, count * record().bytes + tail, dtype=np.uint8)
    buffers = scattered(one, data)
    assert [len(buffer) for buffer in buffers] == [cluster.bytes(count) for cluster in one.clusters]
    for cluster, buffer in zip(one.clusters, buffers, strict=True):
        for member, offset in zip(cluster.members, cluster.offsets, strict=True):
            for g in range(count):
                start = g // cluster.tile * cluster.stride + offset * cluster.tile + g % cluster.tile * member.bytes
                assert start % member.align == 0
                old = g * record().bytes + member.offset
                assert bytes(buffer[start : start + member.bytes]) == bytes(data[old : old + member.bytes])
    back = gathered(one, buffers, np.zeros_like(data))
    expected = without_padding(record(), data)
    whole = count * record().bytes
    assert bytes(without_padding(record(), back)[:whole]) == bytes(expected[:whole])
    assert bytes(gathered(one, buffers, data)[whole:]) == bytes(data[whole:])


@given(layouts())
def test_members_do_not_overlap(one: BufferLayout) -> None:
    for cluster in one.clusters:
        taken = np.zeros(cluster.stride, dtype=int)
        for member, offset in zip(cluster.members, cluster.offsets, strict=True):
            taken[offset * cluster.tile : (offset + member.bytes) * cluster.tile] += 1
        assert taken.max() == 1 or one.is_original
