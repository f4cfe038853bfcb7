"""``layout-advise show``: a trace as text, JSON and CSV, and loop nests in words."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from layout_advise.cli import main
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Point
from layout_advise.reports.words.stream_words import stream_text
from layout_advise.tracer.trace.trace import Allocation, Control, Mapping, Reference, Registers, Thread, Trace, TracedObject
from layout_advise.tracer.trace.trace_file import write_trace
from tests.support.run_folders import HEAP, PC, STACK, at, loop, run_dir, sample_trace


def test_show_prints_the_trace_most_accesses_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run_dir(tmp_path))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "hot, call 3: 1,501 accesses by 4 references, complete (backend clone)"
    assert lines[1].split() == ["0x401000", "?", "read", "8", "1,000", *f"for 1000 step 80 from {HEAP + 8:#x}".split()]
    assert f"random in {HEAP:#x} .. {HEAP + 504:#x}, multiples of 8" in lines[2]
    assert lines[3].endswith(f"at {STACK + 16:#x}")
    assert lines[4].endswith("never executed")
    assert lines[7].split(None, 1)[1] == f"{HEAP:#x} .. {HEAP + 8 + 999 * 80 + 7:#x}  heap block 7 of 80,000 bytes"
    assert lines[8].endswith("[stack]")


def printed(folder: Path, trace: Trace, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    write_trace(trace, folder / "trace.lat")
    assert main(["show", str(folder), *options]) == 0
    return capsys.readouterr().out


def test_show_says_how_many_calls_a_batch_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = TracedObject("heap", "data", None, HEAP, 80_000, HEAP, HEAP + 7, 1, (0,), 7, life="whole")
    one = replace(sample_trace(), objects=(block,), watched=True)
    batch = replace(one, calls=60)
    for trace, title, heap in (
        (one, "call 3", "the call leaves the heap's blocks as they were"),
        (batch, "calls 3 to 62", "the calls leave the heap's blocks as they were"),
    ):
        lines = printed(tmp_path, trace, capsys).splitlines()
        assert lines[0].startswith(f"hot, {title}: 1,501 accesses by 4 references, complete")
        assert f"  {heap}" in lines
        assert f"  data: heap block 7 of 80,000 bytes, alive all through the {title.split()[0]}" in lines
        assert json.loads(printed(tmp_path, trace, capsys, "--json", "-"))["calls"] == trace.calls
        assert f'"hot, {title} (1 us is 1 access)"' in printed(tmp_path, trace, capsys, "--chrome", "-")


def test_show_says_what_becomes_of_the_heap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = TracedObject("heap", "data", None, HEAP, 80_000, HEAP, HEAP + 7, 1, (0,), 7, life="freed")
    born = tuple(Allocation(HEAP + 1_000_000 * n, 1500, 7 + n, PC) for n in (1, 2))
    trace = replace(sample_trace(), objects=(block,), watched=True, born=born, freed=(7,))
    text = printed(tmp_path, trace, capsys)
    assert (
        "\n  the call leaves 2 blocks of 3,000 bytes behind that it allocated, and frees 1 block of those before it\n"
        in text
    )
    assert "  data: heap block 7 of 80,000 bytes, freed in the call\n" in text
    text = printed(tmp_path, replace(trace, calls=2), capsys)
    assert (
        "the calls leave 2 blocks of 3,000 bytes behind that they allocated, and free 1 block of those before them\n" in text
    )
    assert "heap's blocks" not in printed(tmp_path, replace(trace, watched=False), capsys)
    assert "behind" not in printed(tmp_path, replace(trace, watched=False), capsys)


def test_show_says_which_thread_uses_what_and_where_threads_meet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def sweep(thread: int) -> FoldedStream:  # every other double, interleaved: 8 elements, two lines
        return FoldedStream((loop(8, at(HEAP + 8 * thread, 16)),), 8)

    alone = FoldedStream((loop(3, at(HEAP + 4096, 8)),), 3)
    kinds: tuple[tuple[Literal["read", "write"], int], ...] = (("write", 0), ("write", 1), ("read", 1))
    trace = replace(
        sample_trace(),
        references=tuple(Reference(n, PC + 4 * n, 0, kind, 8, thread) for n, (kind, thread) in enumerate(kinds)),
        streams=(sweep(0), sweep(1), alone),
        accesses=19,
        threads=tuple(Thread(n, HEAP, STACK + 64 * n, 0, STACK) for n in (0, 1)),
    )
    lines = printed(tmp_path, trace, capsys).splitlines()
    assert lines[0] == "hot, call 3: 19 accesses by 3 references of 2 threads, complete (backend clone)"
    below = lines[lines.index("accesses by thread") :]
    block = "heap block 7 of 80,000 bytes"
    assert [" ".join(text.split()) for text in below] == [
        *("accesses by thread", "8 thread 0", f"8 {block}", "11 thread 1", f"11 {block}", ""),
        "false sharing: 2 cache lines; 0 cache lines hold bytes that one thread writes and another uses",
        *(f"{HEAP:#x} {block}", f"{HEAP + 64:#x} {block}"),
        f"thread 0: write of 8 at {PC:#x}, 2 lines",
        f"thread 1: write of 8 at {PC + 4:#x}, 2 lines",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"backend": "step", "control": Control(())}, "with backend step: which heap blocks come and go in the call"),
        (
            {"backend": "valgrind"},
            "with backend valgrind: the order of execution, which heap blocks come and go in the call",
        ),
        (
            {"threads": (Thread(0, HEAP, STACK, 0, STACK),)},
            "in parallel regions: the order of execution, which heap blocks come and go in the call",
        ),
    ],
)
def test_show_says_what_only_other_backends_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], said: str
) -> None:
    write_trace(replace(sample_trace(), **change), tmp_path / "trace.lat")
    assert main(["show", str(tmp_path)]) == 0
    found = [text for text in capsys.readouterr().out.splitlines() if text.startswith("not known ")]
    assert found == ([f"not known {said}"] if said else [])


def test_show_takes_the_file_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run_dir(tmp_path) / "trace.lat")]) == 0
    assert capsys.readouterr().out.startswith("hot, call 3")


def test_show_limits_its_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir(tmp_path, extra=30)
    assert main(["show", str(tmp_path), "-n", "3"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n0x") == 3
    assert "\n31 more with 30 accesses (-n 0 prints all)\n" in out
    assert main(["show", str(tmp_path), "-n", "0"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n0x") == 34
    assert " more with" not in out


def test_show_verbose_adds_bounds_and_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run_dir(tmp_path)), "-v"]) == 0
    assert f"  {HEAP + 8:#x} .. {HEAP + 8 + 999 * 80 + 7:#x}, heap block 7 of 80,000 bytes\n" in capsys.readouterr().out


def test_show_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir(tmp_path)
    assert main(["show", str(tmp_path), "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["symbol"], data["accesses"], data["truncated"]) == ("hot", 1501, False)
    first = data["references"][0]
    assert (first["pc"], first["kind"], first["bytes"], first["count"]) == (PC, "read", 8, 1000)
    assert (first["low"], first["high"]) == (HEAP + 8, HEAP + 8 + 999 * 80 + 7)
    assert main(["show", str(tmp_path), "--json", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text()) == data
    assert capsys.readouterr().out.startswith("hot, call 3")


def test_show_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir(tmp_path)
    assert main(["show", str(tmp_path), "--csv", "-"]) == 0
    text = capsys.readouterr().out
    first, *_, last = csv.DictReader(io.StringIO(text))
    assert (int(first["pc"], 16), first["kind"], first["count"], first["line"]) == (PC, "read", "1000", "")
    assert (int(first["low"], 16), int(first["high"], 16)) == (HEAP + 8, HEAP + 8 + 999 * 80 + 7)
    assert first["stream"].startswith("for 1000 step 80")
    assert (last["count"], last["low"], last["stream"]) == ("0", "", "never executed")
    assert main(["show", str(tmp_path), "--csv", str(tmp_path / "out.csv")]) == 0
    assert (tmp_path / "out.csv").read_text() == text


def test_show_of_a_folder_without_trace_and_of_a_foreign_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path)]) == 1
    assert "trace.lat is missing" in capsys.readouterr().err
    (tmp_path / "trace.lat").write_text("hello")
    assert main(["show", str(tmp_path)]) == 1
    assert "is not a trace of layout-advise" in capsys.readouterr().err


SOURCE = """double table[512];
int main(void) { double sum = 0; for (int i = 0; i < 512; i++) sum += table[i];
  return (int)sum; }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "sum.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O0", "-no-pie", "-o", "sum", "sum.c"], cwd=folder, check=True)
    return folder / "sum"


def traced(program: Path) -> Trace:
    """A made-up trace of a real program: its first instruction reads the first of ``table``."""
    from layout_advise.tracer.program.binary import ElfBinary

    binary = ElfBinary.open(program)
    main_function, table = binary.find("main"), next(v for v in binary.variables if v.name == "table")
    reference = Reference(0, main_function.start, 0, "read", 8)
    return Trace(
        symbol="main",
        call=1,
        backend="clone",
        references=(reference,),
        streams=(FoldedStream((loop(512, at(table.address, 8)),), 512),),
        accesses=512,
        truncated=False,
        registers=Registers((0,) * 16, main_function.start, 0, 0, 0),
        mappings=(
            Mapping(0x400000, 0x401000, "r--p", 0, str(program)),
            Mapping(0x401000, 0x402000, "r-xp", 0x1000, str(program)),
            Mapping(table.address & ~4095, (table.address & ~4095) + 8192, "rw-p", 0x2000, str(program)),
        ),
        allocations=(),
    )


def test_show_names_lines_and_variables(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(traced(program), tmp_path / "trace.lat")
    assert main(["show", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "  sum.c:2  read  8  512  for 512 step 8 from 0x" in said.out
    assert said.out.rstrip().endswith("  table in sum")
    assert said.err == ""


def test_show_trusts_no_rebuilt_program(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trace.lat"
    write_trace(traced(program), file)
    before = program.stat().st_mtime - 1000
    os.utime(file, (before, before))
    assert main(["show", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "sum.c" not in said.out
    assert f"{program} has changed since it was traced" in said.err


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ((loop(3, loop(4, at(16, 100, 8))),), "for 3 step 100 for 4 step 8 from 0x10"),
        ((loop(3, at(16, 8), at(32, -8)),), "for 3 (i) { at 0x10 + 8i; at 0x20 - 8i }"),
        ((loop(5, Loop(Affine(1, (2,)), (at(16, 0, 8),))),), "for 5 step 0 for 1 + 2i step 8 from 0x10"),
        ((loop(5, Loop(Affine(0, (-1,)), (at(16, 0, 8),))),), "for 5 step 0 for -i step 8 from 0x10"),
        ((at(16), at(64)), "at 0x10; at 0x40"),
        ((), "no access"),
    ],
)
def test_nests_as_text(nodes: tuple[Point | Loop, ...], text: str) -> None:
    assert stream_text(FoldedStream(nodes, 1)) == text


def test_long_nests_are_cut() -> None:
    stream = FoldedStream(tuple(at(n) for n in range(100)), 100)
    assert len(stream_text(stream, 60)) <= 60
    assert stream_text(stream).endswith("; 76 more parts")


def test_inexact_sets_say_so() -> None:
    assert "inexact" in stream_text(AddressSet(0, 800, 8, 5, None))
