"""Rewritten kernels, run on a device: the same bytes as the original's, and refusals of what cannot be followed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from layout_advise.errors import SourceError
from layout_advise.opencl.host.launch import BufferArgument, Launch, LocalArgument, ValueArgument
from layout_advise.opencl.host.session import DeviceSession
from layout_advise.opencl.host.variants import original, variant
from layout_advise.opencl.measure.verify import compared
from layout_advise.opencl.rewrite.layouts import BufferLayout, layout
from layout_advise.opencl.rewrite.rewrite import atomics, rewritten
from layout_advise.opencl.source.kernels import KernelProgram
from layout_advise.opencl.source.read import read_program
from tests.support.opencl.kernels import FORCES, MANY_USES, device, forces_launch, left_by, random_bytes


def alone(program: KernelProgram, name: str, tile: int = 1) -> BufferLayout:
    """Each member in a buffer of its own; with a tile all in one."""
    record = next(one for one in program.records if one.name == name)
    numbers = range(len(record.members))
    if tile > 1:
        return layout(record, (tuple(numbers),), (tile,))
    return layout(record, tuple((k,) for k in numbers), (1,) * len(record.members))


def many_launch() -> Launch:
    count = 32
    items = np.zeros((count, 64), dtype=np.uint8)
    items[:, :52] = np.random.default_rng(3).integers(0, 60, (count, 52), dtype=np.uint8)
    arguments = (
        BufferArgument(0),
        BufferArgument(1),
        BufferArgument(2),
        LocalArgument(64),
        ValueArgument(np.int32(count).tobytes()),
    )
    buffers = (items.reshape(-1), np.zeros(count * 64, dtype=np.uint8), random_bytes(8 * count))
    return Launch(MANY_USES, "", "many", arguments, buffers, (count,), (16,))


@pytest.mark.parametrize("choice", ["alone", "tiled", "mixed"])
def test_every_use_of_a_record(choice: str) -> None:
    session, launch = DeviceSession(device()), many_launch()
    program = read_program(MANY_USES)
    item = next(one for one in program.records if one.name == "Item")
    chosen = {
        "alone": [alone(program, "Item"), alone(program, "Range")],
        "tiled": [alone(program, "Item", 4)],
        "mixed": [layout(item, ((0, 2, 4), (1, 3), (5, 6)), (8, 16, 1)), alone(program, "Range", 64)],
    }[choice]
    first = original([launch])
    truth = left_by(session, first, launch)
    other = variant("other", program, [launch], chosen)
    launched = other.launches[0]
    made = session.build(other.source, launched.options)
    buffers = [session.buffer(data) for data in launched.buffers]
    kernel = session.prepared(made, launched.kernel, launched.arguments, buffers)
    session.launch(kernel, launched.global_size, launched.local_size)
    left = tuple(session.read(buffer, len(data)) for buffer, data in zip(buffers, launched.buffers, strict=True))
    found = compared(other, [left], first, [truth])
    assert (found.problem, found.compared) == ("", 2 * 32 * 64 + 32 * 8)
    assert found.changed > 500


def test_a_wrong_index_map_is_found() -> None:
    session, launch = DeviceSession(device()), forces_launch()
    program = read_program(FORCES)
    first, right = original([launch]), variant("soa", program, [launch], [alone(program, "Body", 8)])
    wrong = replace(right, source=right.source.replace("g % 8", "(g ^ 1) % 8", 1))
    assert wrong.source != right.source
    truth = left_by(session, first, launch)
    for one, same in ((right, True), (wrong, False)):
        found = left_by(session, one, launch)
        assert all(np.array_equal(a, b) for a, b in zip(truth, found, strict=True)) == same


def test_lines_of_several_kernels_and_records_without_buffers_stay() -> None:
    source = FORCES + "__kernel void other(__global float *o) { Body own; own.x = 3; Body *p = &own; o[0] = p->x; }"
    text = rewritten(read_program(source), [alone(read_program(source), "Body")]).text
    assert "Body *p = &own; o[0] = p->x;" in text
    assert "__global uchar *b_7, const int n" in text


def test_atomic_members_are_known() -> None:
    program = read_program(MANY_USES)
    item = next(one for one in program.records if one.name == "Item")
    assert atomics(program, item) == {"hits"}


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("o[0] = *(__global float *)&p[1];", "line 3: a pointer to an element becomes"),
        ('printf("%p", p);', "printf, of a library, is given elements"),
        ("o[0] = vload4(0, &p[0].a).x;", "the address of member a goes where it cannot be followed"),
        ("__global float *w = &p[0].a; o[0] = w[1];", "the address of member a goes where it cannot be followed"),
    ],
)
def test_what_cannot_be_followed_is_refused(statement: str, why: str) -> None:
    source = (
        f"typedef struct {{ float a, b, c, d; }} S;\n__kernel void k(__global S *p, __global float *o) {{\n{statement} }}"
    )
    program = read_program(source)
    with pytest.raises(SourceError, match="cannot lay out S anew") as error:
        rewritten(program, [alone(program, "S")])
    assert why in error.value.line()


def test_a_record_in_two_address_spaces_is_refused() -> None:
    source = "typedef struct { float a, b; } S;\n__kernel void k(__global S *p, __constant S *q) { p[0].a = q[0].b; }"
    program = read_program(source)
    with pytest.raises(SourceError, match="global and in constant memory"):
        rewritten(program, [alone(program, "S")])


def test_members_may_be_called_like_what_is_generated() -> None:
    names = ("put", "store", "load", "plus", "ref", "same", "at")
    fields = " ".join(f"float {name};" for name in names)
    sums = " + ".join(f"r[i].{name}" for name in names)
    source = f"""typedef struct {{ {fields} }} R;
    __kernel void k(__global R *r) {{ size_t i = get_global_id(0); R own = r[i]; own.put = {sums}; r[i] = own; }}"""
    program = read_program(source)
    new = rewritten(program, [alone(program, "R")])
    assert "la_R_put(r, i, &own)" in new.text
    assert read_program(new.text).kernels[0].name == "k"
