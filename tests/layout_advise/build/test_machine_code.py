"""The original's machine code on other layouts leaves behind what the original does."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from layout_advise.build import machine_code
from layout_advise.build.machine_code import MachineCode, build_machine_code
from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.mockup.ir.lifted import Lifted, Prefetch, everything
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.loop_regions import LoopNest, hottest_nests
from layout_advise.mockup.readdressed.moves import Moves, moves_of
from layout_advise.observe.observe import observed
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.proposals import propose
from layout_advise.propose.source import Source, code_of
from layout_advise.propose.stage import attempt
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park
from layout_advise.verify.forks import in_forks
from layout_advise.verify.verify import NOT_TAKEN, Finding, Subject, verify
from tests.support.tracing.parked_programs import HASWELL, O2, parked

NODES = r"""
#include <stdio.h>
#include <stdlib.h>
#ifdef FIELDS
#define Q 4
#else
#define Q 2
#endif
struct node { double x, v; int kind; float w; double q[Q]; struct node *next; };
static struct node *nodes; static long n = 700, fields; static int table[64];
__attribute__((noipa)) double helper(struct node *a, double dt) { return a->w * dt + a->q[1]; }
__attribute__((noipa)) long hot(long k)
{
    double s = 0; long c = 0;
    for (long i = 0; i < n; i++) {
        struct node *a = nodes + i;
        if (a->kind > 3) { a->x += a->v * 0.5; c += a->next->kind; }
        else { a->v -= k * 0.25; a->w = a->w * 2 + 1; c ^= a->kind << (k & 3); }
        switch (a->kind) { case 0: s += helper(a, k); break; case 1: table[i & 63] += a->kind; break;
            case 2: s -= a->x; break; case 3: c += 7; break; case 4: s *= 0.5; break;
            case 5: a->kind = (a->kind + k) & 7; break; default: c--; }
        s += helper(a->next, 0.5);
        if (k == LATE) a->q[0] += c;
#ifdef FIELDS
        for (long d = 0; d < fields; d++) a->q[d] += a->v * d;
#endif
    }
    return c + (long)s;
}
int main(int argc, char **argv)
{
    nodes = malloc(n * sizeof *nodes); fields = argc + 2; long t = 0;
    for (long i = 0; i < n; i++) nodes[i] = (struct node){i, i * .5, i * 7 % 8, i, {i, 2 * i}, nodes + (i * 37 + 5) % n};
    for (int c = 0; c < 8; c++) t += hot(c + 3);
    printf("%ld\n", t);
}
"""


SPRITES = r"""
#include <stdio.h>
#include <stdlib.h>
struct sprite { float x, y; double z; long id, link; };
static struct sprite *all; static long n = 500;
__attribute__((noipa)) long hot(long k)
{
    long sum = 0;
    for (long i = 1; i < n; i++) {
        struct sprite held = all[i - 1];
        all[i].x += held.x * 0.5f; all[i].y += held.y * 0.5f;
        if (held.id > all[i].id + k) { all[i - 1] = all[i]; all[i] = held; }
        sum += all[i].id ^ (long)all[i].z;
    }
    return sum;
}
int main(void)
{
    all = malloc(n * sizeof *all); long t = 0;
    for (long i = 0; i < n; i++) all[i] = (struct sprite){i, -i, i * .25, i * 77 % 101, i};
    for (int c = 0; c < 8; c++) t += hot(c + 3);
    printf("%ld\n", t);
}
"""


AHEAD = r"""
#include <stdio.h>
#include <stdlib.h>
struct item { double x, v; long id, rest[5]; };
static struct item *all; static long n = 600, order[600];
__attribute__((noipa)) double hot(struct item *a, const long *next)
{
    double sum = 0;
    for (long i = 0; i < n; i++) {
        __builtin_prefetch(&a[next[i] + 3], 1);
        __builtin_prefetch((void *)(next[i] * 0x123456789));
        sum += a[next[i]].x += a[next[i]].v * 0.5;
    }
    return sum;
}
int main(void)
{
    all = calloc(n, sizeof *all); double t = 0;
    for (long i = 0; i < n; i++) { all[i].v = i; order[i] = i * 77 % n; }
    for (int c = 0; c < 8; c++) t += hot(all, order);
    printf("%g\n", t);
}
"""


class Scene:
    """A program parked at a call of its ``hot``, with layouts for what that touches."""

    def __init__(self, process: AgentProcess, program: Path, folder: Path, nest: LoopNest | None = None) -> None:
        self.process, self.folder = process, folder
        binary = ElfBinary.open_module(program)
        function = binary.region(binary.find("hot"), process.load_base, callees=True)
        self.region = function if nest is None else nest.region(function)
        self.seen = observed(process, binary, self.region, trace_call(process, self.region, 3))
        lifted = lift(self.region, outs=nest.outs) if nest is not None else attempt(self.region, "none")
        assert isinstance(lifted, Lifted)
        self.lifted, self.layouts = lifted, propose(self.seen, 12)
        compiler = Compiled("gcc", ("-O2",))
        self.source = Source(code_of(self.seen, lifted), lifted, self.seen.trace, self.seen.structures, compiler)

    def build(self, layouts: Sequence[Candidate]) -> MachineCode:
        return build_machine_code(self.region, self.source, layouts, self.folder / "code")

    def compare(self, made: MachineCode) -> dict[str, Finding]:
        subjects = [Subject(m.variant, m.path, None, self.source.guarded(m.candidate), (0, 0)) for m in made.mockups]
        with in_forks(self.process, subjects, self.lifted, self.seen.trace) as runner:
            return {str(name): found for name, found in verify(runner, subjects).items()}


def compiled(folder: Path, *flags: str, late: int = 0, text: str = NODES) -> Path:
    source = folder / "nodes.c"
    source.write_text(text)
    subprocess.run(["gcc", "-g", *flags, f"-DLATE={late}", "-o", folder / "nodes", source], check=True)
    return folder / "nodes"


@pytest.mark.parametrize("flags", [O2, HASWELL, ("-O1", "-fno-pic", "-no-pie")], ids=" ".join)
def test_every_layout_does_the_same(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = compiled(tmp_path, *flags)
    with parked(program, 3) as process:
        scene = Scene(process, program, tmp_path)
        made = scene.build(scene.layouts)
        found = scene.compare(made)
    assert made.reasons == {}
    assert {m.candidate.id for m in made.mockups if m.variant.is_candidate} == {c.id for c in scene.layouts}
    forms = ("-machine", "-machine@1", "-machine-twice", "-machine-twice@1")
    own = {"identity-machine" + "".join(f"-{r.structure.id}" for r in c.relayouts) for c in scene.layouts}
    unchanged = {f"{name}{place}" for name in {"identity-machine", *own} for place in ("", "@1")}
    assert {f"{c.id}{form}" for c in scene.layouts for form in forms} | unchanged == found.keys()
    assert {name: one.reason for name, one in found.items() if one.reason} == {}
    assert {"soa", "split"} <= {family for c in scene.layouts for family in c.families}
    assert any(c.block for c in scene.layouts)


def test_prefetches_go_where_the_accesses_of_their_pointer_go(tmp_path: Path) -> None:
    program = compiled(tmp_path, "-O2", "-mprfchw", text=AHEAD)
    with parked(program, 3) as process:
        scene = Scene(process, program, tmp_path)
        made = scene.build(scene.layouts)
        found = scene.compare(made)
    assert not [str(name) for name, finding in found.items() if finding.reason]
    hints = [item for item in everything(scene.lifted.body) if isinstance(item, Prefetch)]
    assert sorted(item.hint for item in hints) == ["t0", "w"]
    known = {item.hint: f"{item.origin.pc:#x}: " for item in hints}
    whole = [m for m in made.mockups if m.variant.is_candidate and "aosoa" not in m.candidate.families]
    texts = [m.path.with_suffix(".c").read_text() for m in whole]
    assert len(texts) >= 8
    assert all(known["w"] in text for text in texts)
    assert not any(known["t0"] in text for text in texts), "it starts from no pointer"


def test_loops_over_fields_find_their_places(tmp_path: Path) -> None:
    program = compiled(tmp_path, "-O1", "-DFIELDS")
    with parked(program, 3) as process:
        scene = Scene(process, program, tmp_path)
        made = scene.build(scene.layouts)
        found = scene.compare(made)
    served = {m.candidate.id for m in made.mockups if m.variant.is_candidate}
    assert "soa" in {family for c in scene.layouts if c.id in served for family in c.families}
    assert all("not evenly apart" in why for why in made.reasons.values())
    assert {c.id for c in scene.layouts} == served | made.reasons.keys()
    assert {name: one.reason for name, one in found.items() if one.reason} == {}
    texts = [m.path.with_suffix(".c").read_text() for m in made.mockups]
    assert any(" * k + d is at " in text for text in texts)


@pytest.mark.parametrize("flags", [O2, HASWELL], ids=" ".join)
def test_elements_that_are_copied_as_vectors_are_copied_in_pieces(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """As struct assignments are, and floats side by side."""
    with parked(compiled(tmp_path, *flags, text=SPRITES), 3) as process:
        scene = Scene(process, tmp_path / "nodes", tmp_path)
        made = scene.build(scene.layouts)
        found = scene.compare(made)
    assert any(" pieces" in m.path.with_suffix(".c").read_text() for m in made.mockups)
    assert made.reasons == {}
    assert {name: one.reason for name, one in found.items() if one.reason} == {}


def test_a_loop_is_left_where_the_originals_is(tmp_path: Path) -> None:
    """It is entered and left in the middle of its function, whose registers it has."""
    program = compiled(tmp_path, *O2)
    binary = ElfBinary.open_module(program)
    function = binary.find("hot")
    samples = dict.fromkeys(range(function.start, function.start + function.size), 1)
    nest = next(hottest_nests(binary.region(function, 0, callees=True), samples))
    assert isinstance(nest, LoopNest)

    def entry(address: int) -> Entry:
        return Entry(program, address, binary.read(address, function.start + function.size - address), "hot")

    place = replace(entry(nest.entry), exits=tuple(map(entry, nest.exits)))
    with park([str(program)], place, 3, timeout=60) as process:
        scene = Scene(process, program, tmp_path, nest)
        made = scene.build(scene.layouts)
        found = scene.compare(made)
    assert made.reasons == {}
    assert len(found) > len(scene.layouts)
    assert {name: one.reason for name, one in found.items() if one.reason} == {}


def test_a_wrong_place_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison is no formality: one access that goes elsewhere shows."""

    def off_by_one(candidate: Candidate, *rest: object) -> Moves:
        found = moves_of(candidate, *rest)  # type: ignore[arg-type]
        key = max(found.of)
        moved = replace(found.of[key], offset=found.of[key].offset + found.of[key].steps.stride)
        return replace(found, of={**found.of, key: moved})

    program = compiled(tmp_path, *O2)
    with parked(program, 3) as process:
        scene = Scene(process, program, tmp_path)
        monkeypatch.setattr(machine_code, "moves_of", off_by_one)
        found = scene.compare(scene.build(scene.layouts[:2]))
    assert len(found) > 2
    unmoved = ("identity-machine", "identity-machine@1")
    assert all((one.reason is None) == (name in unmoved) for name, one in found.items())


def test_a_way_that_was_not_traced_ends_there(tmp_path: Path) -> None:
    """A store that the traced call did not make may be one to what is re-laid."""
    program = compiled(tmp_path, *O2, late=6)  # at the fourth call
    with parked(program, 3) as process:
        scene = Scene(process, program, tmp_path)
        made = scene.build(scene.layouts[:1])
    with parked(program, 4) as process:
        scene.process = process
        found = scene.compare(made)
    assert {name: one.reason for name, one in found.items() if not name.startswith("identity")} == dict.fromkeys(
        ("c1-machine", "c1-machine@1", "c1-machine-twice", "c1-machine-twice@1"), NOT_TAKEN
    )
    assert found["identity-machine"].reason is None


def test_elements_in_another_order_are_refused(tmp_path: Path) -> None:
    program = compiled(tmp_path, *O2)
    with parked(program, 3) as process:
        scene = Scene(process, program, tmp_path)
    (layout, *_) = scene.layouts
    (first, *rest) = layout.relayouts
    inexact = replace(first, structure=replace(first.structure, inexact="the trace is not whole"))
    structures = [inexact.structure, *(s for s in scene.seen.structures if s.id != inexact.structure.id)]
    with pytest.raises(RemapError, match="not whole"):
        moves_of(replace(layout, relayouts=(inexact, *rest)), scene.seen.trace, structures)
