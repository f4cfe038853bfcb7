"""Buffers that a program exchanges between calls: which structures these are, that they are re-laid alike, and the road."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.explore.joint_candidates import (
    can_be_rearranged,
    changing_places,
    in_turn,
    taking_turns,
    twins,
)
from tests.support.command import advise
from tests.support.mockups.case import FLAGS, PARTICLES, Case, f64_fields
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout
from tests.support.run_folders import studied_region

STATE, WET, HEAT = Field("state", 0, 1), Field("wet", 1, 1), Field("heat", 4, 4)


def buffer(number: int, *fields: Field, of: str | None = "cell", element: int = 24) -> Structure:
    base = 0x10000 * (number + 1)
    return Structure(f"s{number}", f"b{number}", base, 2400, (Dim(2400 // element, element),), fields, (), base, "heap", of)


SOURCE, TARGET = buffer(0, STATE, WET, HEAT), buffer(1, STATE, HEAT)
BOTH = (SOURCE, buffer(1, STATE, WET, HEAT))


def test_twins_are_arrays_of_one_declaration() -> None:
    assert twins((SOURCE, TARGET)) == ((SOURCE, TARGET),)
    assert twins((replace(SOURCE, type=None), replace(TARGET, type=None)))
    assert not twins((SOURCE, buffer(1, STATE, of="site")))
    assert not twins((SOURCE, buffer(1, STATE, element=12)))
    assert not twins((SOURCE, replace(TARGET, inexact="the trace is not whole")))


def test_a_field_of_the_other_buffer_at_a_further_call_shows_an_exchange() -> None:
    assert taking_turns((SOURCE, TARGET), BOTH) == (frozenset(("s0", "s1")),)
    assert taking_turns((SOURCE, TARGET), (SOURCE, TARGET)) == ()


def test_a_field_that_no_buffer_had_before_is_no_exchange() -> None:
    age = Field("age", 8, 4)
    assert taking_turns((SOURCE, TARGET), (SOURCE, buffer(1, STATE, HEAT, age))) == ()


def test_code_that_works_on_the_other_buffer_at_a_further_call_shows_an_exchange() -> None:
    reads, writes, both = frozenset(((1, 0), (2, 0))), frozenset(((3, 0),)), (frozenset(("s0", "s1")),)
    call = {"s0": reads, "s1": writes}
    assert changing_places([BOTH], call, {"s0": writes, "s1": reads}) == both
    assert changing_places([BOTH], call, {"s1": reads | writes}) == both
    assert changing_places([BOTH], call, call) == ()
    assert changing_places([BOTH], call, {"s0": reads | writes, "s1": writes}) == ()  # both call's reads, and more
    assert changing_places([], call, {"s0": writes, "s1": reads}) == ()


def test_arrays_of_plain_numbers_cannot_be_rearranged() -> None:
    assert can_be_rearranged(BOTH)
    assert not can_be_rearranged([buffer(0, HEAT, element=4), buffer(1, HEAT, element=4)])


def test_exchanged_structures_are_laid_out_alike_or_not_at_all() -> None:
    alone = explore(BOTH, budget=50)
    found = explore(BOTH, budget=50, exchanged=(frozenset(("s0", "s1")),))
    assert any(len(c.relayouts) == 1 for c in alone)
    assert found
    for one in found:
        first, second = one.relayouts
        assert (first.structure.id, second.structure.id) == ("s0", "s1")
        assert first.fields == second.fields
        assert {b.name for b in first.buffers}.isdisjoint(b.name for b in second.buffers)
    assert all(c.derivation[0].startswith("s0: ") and c.derivation[1].startswith("s1: ") for c in found)
    assert len({tuple(r.fields for r in c.relayouts) for c in found}) == len(found)


def test_a_third_structure_is_laid_out_with_them() -> None:
    third = buffer(2, STATE, HEAT, of="site", element=12)
    found = explore((*BOTH, third), budget=50, exchanged=(frozenset(("s0", "s1")),))
    assert {tuple(r.structure.id for r in c.relayouts) for c in found} == {("s0", "s1"), ("s2",), ("s0", "s1", "s2")}


def test_where_one_cannot_be_moved_the_other_is_not() -> None:
    found = explore(BOTH, refused={"s1"}, exchanged=(frozenset(("s0", "s1")),))
    assert [[r.structure.id for r in c.relayouts] for c in found] == [["s0", "s1"]]


def test_structures_that_differ_are_laid_out_by_themselves() -> None:
    names = (frozenset(("s0", "s1")),)
    assert list(in_turn(BOTH, names)) == [BOTH]
    assert list(in_turn((SOURCE, TARGET), names)) == [(SOURCE,), (TARGET,)]
    assert list(in_turn(BOTH, names, apart={"s1"})) == [(BOTH[0],), (BOTH[1],)]
    assert list(in_turn(BOTH, ())) == [(BOTH[0],), (BOTH[1],)]


def test_an_exchanged_structure_walked_in_random_order_counts_for_both() -> None:
    walks = {"s0": Walk(0), "s1": Walk(0, gathered=True)}
    turns = (frozenset(("s0", "s1")),)
    both = explore(BOTH, walks=walks, exchanged=turns)
    assert both == explore(BOTH, walks={"s0": Walk(0, gathered=True)}, exchanged=turns)


def test_bytes_of_no_field_are_named(tmp_path: Path) -> None:
    case = Case(PARTICLES, "move", FLAGS["O2"], tmp_path)
    case.arrays = [np.zeros(36 * 80, np.uint8)]
    base = case.arrays[0].ctypes.data
    case.integers, case.floats = [base, 36], [0.5]
    fields = f64_fields(("x", 0), ("y", 8), ("vx", 24), ("vy", 32), ("vz", 40))
    shape = Structure("s3", "swarm", base, 36 * 80, (Dim(36, 80),), fields)
    case.structures = (shape,)
    case.prepare()
    with pytest.raises(RemapError, match=r"bytes 16 to 23 of the 80 of each element of s3 \(swarm\)"):
        emit_mockup(case.lifted, candidate(relayout(shape, "soa")), case.trace, case.structures)


PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
struct cell { unsigned char state, wet; float heat, age; double height; };
__attribute__((noinline)) void step(const struct cell *from, struct cell *to, long n)
{
    for (long i = 1; i < n - 1; i++) {
        float heat = 0.5f * from[i].heat + 0.25f * (from[i - 1].heat + from[i + 1].heat);
        if (i % 64 == 0 && from[i].wet) /* seldom: the calls are of one kind */
            heat -= 0.5f;
        to[i].state = heat > 20.0f ? 2 : from[i].state;
        to[i].heat = heat + 0.01f * from[i].state;
    }
}
int main(void)
{
    enum { N = 40000 };
    struct cell *from = calloc(N, sizeof *from), *to = calloc(N, sizeof *to);
    double sum = 0.0;
    for (int i = 0; i < N; i++) {
        from[i].heat = to[i].heat = (i * 7919 % 1000) / 20.0f;
        from[i].wet = to[i].wet = i % 11 == 0;
        from[i].state = to[i].state = i % 3 == 0;
    }
    for (int call = 0; call < 200; call++) {
        struct cell *other = from;
        step(from, to, N);
        from = to;
        to = other;
    }
    for (int i = 0; i < N; i++)
        sum += from[i].heat + from[i].state;
    printf("%.17g\n", sum);
}
"""


ALIKE = r"""
#include <stdio.h>
#include <stdlib.h>
struct cell { double a, b, c; };
__attribute__((noinline)) void step(const struct cell *from, struct cell *to, long n)
{
    for (long i = 1; i < n - 1; i++) {
        to[i].a = 0.5 * (from[i - 1].a + from[i + 1].b);
        to[i].b = 0.5 * (from[i - 1].b + from[i + 1].c);
        to[i].c = 0.5 * (from[i - 1].c + from[i + 1].a);
    }
}
int main(void)
{
    enum { N = 100000 };
    struct cell *at[2] = {calloc(N, sizeof **at), calloc(N, sizeof **at)};
    for (int i = 0; i < N; i++)
        at[0][i].a = at[1][i].b = i % 7;
    for (int call = 0; call < 200; call++)
        step(at[call % 2], at[1 - call % 2], N);
    printf("%.17g\n", at[0][N / 2].a);
}
"""


@pytest.mark.slow
def test_swapped_buffers_with_the_same_fields_get_one_layout(tmp_path: Path) -> None:
    """One of them alone was advised to become an array of blocks (`examples/lbm`), though the next call writes it."""
    (tmp_path / "alike.c").write_text(ALIKE)
    built = tmp_path / "alike"
    subprocess.run(["gcc", "-g", "-O2", "-o", str(built), str(tmp_path / "alike.c")], check=True)
    options = ("--hotspot", "step", "--restores", "2", "--candidates", "5")
    candidates = advise([built], *options, folder=tmp_path).hotspots[0].candidates
    assert candidates
    assert all(len(one.structures) == 2 for one in candidates)


@pytest.mark.slow
@pytest.mark.parametrize("debug", [("-g",), ()], ids=["dwarf", "stripped"])
def test_the_road_with_swapped_buffers(debug: tuple[str, ...], tmp_path: Path) -> None:
    """At the calls where mock-ups are compared the buffers stand now in one role, now in the other."""
    (tmp_path / "grid.c").write_text(PROGRAM)
    built = tmp_path / "grid"
    subprocess.run(["gcc", *debug, "-O2", "-o", str(built), str(tmp_path / "grid.c")], check=True)
    options = ("--hotspot", "step", "--restores", "3", "--candidates", "2", "--budget", "1")
    hotspot = advise([built], *options, folder=tmp_path).hotspots[0]
    spans = [[(f.offset, f.bytes) for f in s.fields] for s in hotspot.structures if s.bytes == 40000 * 24]
    assert spans == [[(0, 1), (1, 1), (4, 4)]] * 2
    assert hotspot.candidates
    for one in hotspot.candidates:
        assert len(one.structures) == 2
        assert one.evidence == "verified"
        assert one.verification is not None
        assert one.verification.calls == 3
    plans = [c["relayouts"] for c in json.loads((studied_region(tmp_path / "run") / "candidates.json").read_text())]
    assert all(first["fields"] == second["fields"] for first, second in plans)
