"""Ways that no call took and that come back to their loop: a mock-up asks for them when the loop is done."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.ir.lifted import Goto, Label, Lifted, LiftedLoop, WayEnd, everything
from layout_advise.mockup.ir.verify import verify_form
from layout_advise.mockup.lift.inline_calls import Untaken
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.cfg import build_cfg
from layout_advise.mockup.rewrite.stop_behind_loops import stop_behind_loops
from layout_advise.mockup.run.build import build
from layout_advise.mockup.run.survey import source_of
from layout_advise.tracer.program.binary import ElfBinary
from tests.support.lifting.run_lifted import EndedWayError, run_lifted
from tests.support.mockups.native import references_of, trace_of
from tests.support.mockups.small_memory import MEMORY_BYTES, MEMORY_START, SmallMemory

LOOP = r"""
__asm__(".globl {name}\n.type {name}, @function\n{name}:\n"
        "pxor %xmm1, %xmm1\nlea (%rdi,%rsi,8), %rdx\nmov %rdi, %rax\n"
        "1: movsd (%rax), %xmm0\naddsd %xmm0, %xmm0\n{before}\ncomisd %xmm1, %xmm0\njb 2f\nmovsd %xmm0, {place}\n"
        "add $8, %rax\ncmp %rdx, %rax\njne 1b\n3: ret\n"
        "2: {way}\nadd $8, %rax\ncmp %rdx, %rax\njne 1b\n{end}\n.size {name}, .-{name}");
"""
"""A loop whose end is copied to a way (2:) that comes back, as gcc writes ``2 * x >= 0 ? 2 * x : 0``."""
HERE, PICKED = "(%rax)", "(%rdi,%rcx,8)"
PICK = "cvttsd2si %xmm0, %rcx"
ABLE = {"chosen": ("", HERE, "movq $0, (%rax)", "jmp 3b"), "other_sum": ("", HERE, "addsd (%rax), %xmm0", "jmp 3b")}
UNABLE = {
    "writes_elsewhere": ("", HERE, "movq $0, 8(%rax)", "jmp 3b"),
    "reads_elsewhere": ("", HERE, r"mov (%rdi), %rcx\nmov %rcx, (%rax)", "jmp 3b"),
    "calls": ("", HERE, r"push %rax\npush %rdx\ncall *%rcx\npop %rdx\npop %rax", "jmp 3b"),
    "returns": ("", HERE, "movq $0, (%rax)", "ret"),
    "picks": (PICK, PICKED, r"movq $0, (%rdi,%rcx,8)", "jmp 3b"),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ElfBinary:
    folder = tmp_path_factory.mktemp("behind")
    parts = ("before", "place", "way", "end")
    text = [LOOP.format(name=name, **dict(zip(parts, how, strict=True))) for name, how in (ABLE | UNABLE).items()]
    (folder / "loops.c").write_text("".join(text))
    subprocess.run(["gcc", "-shared", "-o", folder / "libloops.so", folder / "loops.c"], check=True)
    return ElfBinary.open_module(folder / "libloops.so")


def lifted(library: ElfBinary, name: str) -> Lifted:
    """The loop, as it is where no call took its way: all that is behind the first ``ret``."""
    region = library.region(library.find(name), 0)
    starts = build_cfg(region, indirect_calls=True, loops=False).blocks
    (first, *_) = sorted(start for start, block in starts.items() if block.insns[-1].mnemonic == "ret")
    behind = frozenset(start for start in starts if start > first)
    return lift(region, result="none", opaque=True, untaken=Untaken(behind, all_stop=True))


def rewritten(form: Lifted) -> Lifted:
    evidence = Evidence.of(trace_of(form, None, references_of(form), form.symbol), ())
    made = stop_behind_loops(form, evidence)
    verify_form(made, "stop_behind_loops")
    return made


def loop_of(form: Lifted) -> LiftedLoop:
    (loop,) = (item for item in everything(form.body) if isinstance(item, LiftedLoop))
    return loop


def leaving(form: Lifted) -> list[Goto]:
    """The jumps out of the loop."""
    body = loop_of(form).body
    own = {item.number for item in body if isinstance(item, Label)}
    return [item for item in body if isinstance(item, Goto) and item.label not in own]


def left(form: Lifted, numbers: list[float]) -> bytes | None:
    """The memory after a run; None where it came to the end of the way."""
    memory = SmallMemory(struct.pack(f"{len(numbers)}d", *numbers).ljust(MEMORY_BYTES, b"\0"))
    try:
        run_lifted(form, {Gpr(7): MEMORY_START, Gpr(6): len(numbers)}, memory)
    except EndedWayError:
        return None
    return bytes(memory.data)


@pytest.mark.parametrize("name", ABLE)
def test_nothing_leaves_the_loop(library: ElfBinary, name: str) -> None:
    form = lifted(library, name)
    (end,) = (item for item in everything(form.body) if isinstance(item, WayEnd))
    assert end.rejoins == {loop_of(form).head}
    made = rewritten(form)
    assert leaving(form)
    assert not leaving(made)
    assert [item for item in everything(made.body) if isinstance(item, WayEnd)] == [end]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-3, 50), min_size=1, max_size=20))
def test_it_stops_where_it_did_and_else_leaves_the_same(library: ElfBinary, numbers: list[float]) -> None:
    form = lifted(library, "chosen")
    assert left(form, numbers) == left(rewritten(form), numbers)
    assert (left(form, numbers) is None) == any(number < 0 for number in numbers)


@pytest.mark.parametrize("name", UNABLE)
def test_it_stops_at_once_where_going_on_could_do_harm_or_the_way_does_more(library: ElfBinary, name: str) -> None:
    form = lifted(library, name)
    assert leaving(form)
    assert rewritten(form) == form


def test_compilers_make_vectors_of_it(library: ElfBinary, tmp_path: Path) -> None:
    """The arrays are taken as aligned, as those of a layout are."""

    def packed(form: Lifted) -> bool:
        source = source_of(form).replace("la_f64_u", "double")
        built = build(source, tmp_path / "built.so", "gcc", ("-O3",))
        assert built.path is not None, built.log
        code = subprocess.run(["objdump", "-d", built.path], capture_output=True, text=True, check=True).stdout
        return re.search(r"\b(add|mul)pd\b", code) is not None

    form = lifted(library, "chosen")
    assert not packed(form)
    assert packed(rewritten(form))
