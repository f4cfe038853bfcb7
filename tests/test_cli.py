"""The command line: every command's help, its errors, its exit codes, and what is printed."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
import tty
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from layout_advise import __version__
from layout_advise.cli import COMMANDS, main
from layout_advise.commands import common, doctor, show
from layout_advise.commands.doctor import Finding
from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.nests import AddressSet, Affine, FoldedStream, Loop, Point
from layout_advise.layoutalgebra.text import parse
from layout_advise.reports import model
from layout_advise.reports.model import Interval
from layout_advise.reports.nests import stream_text
from layout_advise.tracer.trace import Allocation, Mapping, Reference, Registers, Trace
from layout_advise.tracer.trace_file import write_trace
from tests.sample_report import report

NAMES = [module.__name__.rsplit(".", 1)[1] for module in COMMANDS]
AOS = "A_256 ⊗ S_{0,1;4}"
EVEN, ODD = "(S_{0;2} ⊗ A_256 ⊗ S_{0,1;4})", "(S_{1;2} ⊗ A_256 ⊗ S_{2,3;4})"
HEAP, STACK, PC = 0x7FFF00000000, 0x7FFFFFFFE000, 0x401000


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: for what only the end of one shows."""
    command = [sys.executable, "-m", "layout_advise", *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


@pytest.mark.parametrize("name", NAMES)
def test_help_teaches_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    out = capsys.readouterr().out
    assert stop.value.code == 0
    assert f"\n  layout-advise {name}" in out
    assert "==SUPPRESS==" not in out


def test_the_whole_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    out = capsys.readouterr().out
    assert stop.value.code == 0
    assert all(f"    {name} " in out for name in NAMES)


def test_help_keeps_the_brackets_of_terms(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["layout", "--help"])
    assert "'A[256] * S[0,1;4]'" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["-V"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"layout-advise {__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["no-such-command"],
        ["trace"],
        ["trace", "--call", "0", "--", "./app"],
        ["trace", "--until", "lunch", "--", "./app"],
        ["report"],
        ["report", "a", "b"],
        ["compare", "a"],
        ["layout"],
        ["layout", "A_4", "--ascii", "--latex"],
        ["layout", "A_4", "--rule", "4"],
        ["layout", "A_4", "--rule", "5@0"],
        ["layout", "A_4", "--rule", "4@0:2"],
        ["layout", "A_4", "--rule", "99@0"],
        ["show", "x", "-n", "many"],
        ["doctor", "--no-such-option"],
        ["report", "/no/such/folder"],
        ["show", "/no/such/folder"],
        ["compare", "/no/such/a", "/no/such/b"],
    ],
    ids=" ".join,
)
def test_usage_errors_exit_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code  # type: ignore[assignment]
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert "layout-advise" in said.err
    assert "Traceback" not in said.err


# layout


def shown(out: str, label: str) -> list[str]:
    return [line.split(None, 1)[1] for line in out.splitlines() if line.startswith(f"  {label} ")]


def test_layout_prints_sizes_offsets_and_a_drawing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", AOS]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == AOS
    assert shown(out, "domain") == ["1,024, 512 accessed (50 %)"]
    assert shown(out, "offsets") == ["0 1 4 5 8 9 12 13 16 17 20 21 …"]
    assert shown(out, "drawing") == ["AB.." * 16 + " …"]


def test_layout_rewrites_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", AOS, "--rule", "5@0:4", "--rule", "4@1", "--rule", "7@1"]) == 0
    out = capsys.readouterr().out
    steps = [line for line in out.splitlines() if line.startswith("rule ")]
    assert steps == [
        "rule 5 at factor 0: A_64 ⊗ A_4 ⊗ S_{0,1;4}",
        "rule 4 at factor 1: A_64 ⊗ S_{0,1;4} ⊗ A_4",
        "rule 7 at factor 1: A_64 ⊗ A_2 ⊗ A_4",
    ]
    drawings = shown(out, "drawing")
    assert drawings[2].startswith("AAAABBBB........AAAABBBB")
    assert drawings[3].startswith("AAAABBBBAAAABBBB")


@pytest.mark.parametrize(
    ("term", "rule", "result"),
    [
        ("S_{0:4,8:12;16}", "1@0:4", "S_{0,2;4} ⊗ A_4"),
        ("S_{1,5,9,13;16}", "2@0:4", "A_4 ⊗ S_{1;4}"),
        ("S_{1,9;16}", "3@0:4", "S_{0,2;4} ⊗ S_{1;4}"),
        ("A_6 ⊗ S_{0;3}", "4@0", "S_{0;3} ⊗ A_6"),
        ("A_12", "5@0:4", "A_3 ⊗ A_4"),
        ("S_{0,1;3} ⊗ S_{1;2}", "6@0", "S_{1,3;6}"),
        ("A_6 ⊗ S_{0,2;3}", "7@1", "A_6 ⊗ A_2"),
        ("A_6 ⊗ S_{0,2;3}", "8@1:4", "A_6 ⊗ S_{0,2;4}"),
        ("A_4 ⊗ (S_{0;3} ⊕ S_{2;3})", "4@0", "S_{0,2;3} ⊗ A_4"),
    ],
)
def test_every_rule(term: str, rule: str, result: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", term, "--rule", rule, "-q"]) == 0
    assert capsys.readouterr().out == f"{result}\n"


@pytest.mark.parametrize("notation", ["--ascii", None])
def test_what_layout_prints_it_reads(notation: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    term = f"{EVEN} ⊕ {ODD}"
    assert main(["layout", term, "-q", *([notation] if notation else [])]) == 0
    out = capsys.readouterr().out
    assert out.isascii() == (notation == "--ascii")
    assert parse(out) == parse(term)


def test_ascii_output_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", AOS, "--ascii", "--rule", "4@0"]) == 0
    assert capsys.readouterr().out.isascii()


def test_latex(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", AOS, "--latex", "-q"]) == 0
    assert capsys.readouterr().out == "A_{256} \\otimes S_{\\{0,1\\};4}\n"


def test_the_drawing_follows_the_members(tmp_path: Path) -> None:
    file = tmp_path / "steps.svg"
    assert main(["layout", "A_4 ⊗ S_{0,1;4}", "--rule", "4@0", "--rule", "7@0", "--svg", str(file)]) == 0
    svg = file.read_text()
    assert svg.startswith("<svg ")
    assert svg.count("</svg>") == 1
    assert svg.count(": member 0</title>") == svg.count(": member 1</title>") == 3 * 4
    assert svg.count(": unused</title>") == 8 + 8 + 0


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["A_256 * S_{0,1"], ["line 1, column 15", "A_256 * S_{0,1^"]),
        (["A_4 ⊗ X_3"], ["column 7", "A_4 ⊗ ^X_3"]),
        (["A_0"], ["sizes start at 1", "^A_0"]),
        (["A_4 ⊕ A_5"], ["different domains"]),
        ([AOS, "--rule", "7@0"], ["rule 7 does not apply at factor 0", "array"]),
        ([AOS, "--rule", "5@0:3"], ["3 does not divide 256", "258"]),
        ([AOS, "--rule", "4@9"], ["there are 2 factors"]),
        ([f"{EVEN} ⊕ {ODD}", "--rule", "7@0", "--rule", "7@1"], ["1024 accessed offsets would share 512 places"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_layout_errors_are_one_line(words: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", *words]) == AlgebraError.exit_code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert all(part in said.err for part in parts)


def test_huge_terms_cost_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "A_1000000000000 ⊗ S_{0,5;64}", "--rule", "4@0", "--rule", "7@0"]) == 0
    assert "2,000,000,000,000 accessed (100 %)" in capsys.readouterr().out


# show


def loop(trip: int, *body: Point | Loop) -> Loop:
    return Loop(Affine(trip), body)


def at(address: int, *coefs: int) -> Point:
    return Point(Affine(address, coefs))


def sample_trace(extra: int = 0, path: str = "/no/such/program") -> Trace:
    streams = [
        FoldedStream((loop(1000, at(HEAP + 8, 80)),), 1000),
        None,
        AddressSet(HEAP, HEAP + 8 * 63, 8, 500, b"\xff" * 8),
        FoldedStream((at(STACK + 16),), 1),
        *[FoldedStream((at(STACK + 16),), 1)] * extra,
    ]
    kinds = ("read", "write", "both", "write")
    return Trace(
        symbol="hot",
        call=3,
        backend="clone",
        references=tuple(Reference(n, PC + 4 * n, 0, kinds[n % 4], 8) for n in range(len(streams))),  # type: ignore[arg-type]
        streams=tuple(streams),
        accesses=1501 + extra,
        truncated=False,
        registers=Registers((0,) * 16, PC, 0x246, 0x1F80, 0),
        mappings=(Mapping(PC, PC + 4096, "r-xp", 0, path), Mapping(STACK, STACK + 8192, "rw-p", 0, "[stack]")),
        allocations=(Allocation(HEAP, 80_000, 7, PC + 64),),
    )


def run_dir(folder: Path, extra: int = 0) -> Path:
    write_trace(sample_trace(extra), folder / "trace.lat")
    return folder


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
    from layout_advise.tracer.binary import Binary

    binary = Binary.open(program)
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


# report, compare


def saved(folder: Path, content: model.Report | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "report.json").write_bytes(model.encode(content or report()))
    return folder


def slower(by: float) -> model.Report:
    """The sample report with all measured speedups divided by ``by``."""

    def less(value: Interval | None) -> Interval | None:
        return Interval(value.median / by, value.lo / by, value.hi / by, 9) if value else None

    first = report().hotspots[0]
    moved = tuple(msgspec.structs.replace(c, speedup=less(c.speedup)) for c in first.candidates)
    return msgspec.structs.replace(report(), hotspots=(msgspec.structs.replace(first, candidates=moved),))


def test_report_prints_again_and_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, data = tmp_path / "out.html", tmp_path / "out.json"
    assert main(["report", str(saved(tmp_path / "r")), "--html", str(page), "--json", str(data)]) == 0
    assert capsys.readouterr().out.startswith("Change it: c1 <SoA>")
    assert page.read_text().lstrip().lower().startswith("<!doctype html")
    assert model.decode(data.read_bytes()) == report()


def test_report_json_is_all_there_is_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(saved(tmp_path / "r") / "report.json"), "--json", "-"]) == 0
    assert model.decode(capsys.readouterr().out.encode()) == report()


def test_report_quiet_is_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(saved(tmp_path / "r")), "-q"]) == 0
    assert capsys.readouterr().out == report().hotspots[0].verdict.text + "\n"


def test_report_of_nothing_and_into_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 1
    assert "no report in" in capsys.readouterr().err
    assert main(["report", str(saved(tmp_path / "r")), "--json", str(tmp_path / "no" / "x.json")]) == 1
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize(("by", "mark"), [(1.0, "~"), (2.0, "-"), (0.5, "+")])
def test_compare_marks_what_moved(tmp_path: Path, by: float, mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(saved(tmp_path / "a")), str(saved(tmp_path / "b", slower(by)))]) == 0
    out = capsys.readouterr().out
    assert out.startswith("step: change → change")
    measured = [line.split() for line in out.splitlines() if line.count("×") == 2]
    assert [words[0] for words in measured] == [mark]
    assert measured[0][-6:-3] == ["3.61×", "[3.50,", "3.70]"]


def test_compare_prints_names_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = msgspec.structs.replace(report().hotspots[0], symbol="work<int [red]>")
    other = saved(tmp_path / "a", msgspec.structs.replace(report(), hotspots=(first,)))
    assert main(["compare", str(other), str(other)]) == 0
    assert "work<int [red]>" in capsys.readouterr().out
    assert main(["compare", str(other), str(saved(tmp_path / "b"))]) == 0
    assert "no hotspot in common" in capsys.readouterr().out


# doctor


def findings(*found: Finding) -> tuple[object, ...]:
    return tuple((lambda f=f: f) for f in found)


@pytest.mark.parametrize(
    ("found", "code", "words"),
    [
        ((Finding("gcc", True, True, "12 [ok]"), Finding("perf", False, False, "gone", "get it")), 0, ["12 [ok]", "absent"]),
        ((Finding("gcc", False, True, "not found", "apt-get install gcc"),), 4, ["missing gcc", "apt-get install gcc"]),
    ],
)
def test_doctor_exit_codes(
    found: Sequence[Finding],
    code: int,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(doctor, "CHECKS", findings(*found))
    assert main(["doctor"]) == code
    said = capsys.readouterr()
    assert all(word in said.out for word in words)
    assert ("missing: gcc" in said.err) == (code == 4)
    assert main(["doctor", "--json"]) == code
    assert [f["ok"] for f in json.loads(capsys.readouterr().out)] == [f.ok for f in found]


def test_doctor_looks_at_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    seen = {f["name"]: f for f in json.loads(capsys.readouterr().out)}
    assert {"platform", "fixed addresses", "gcc", "as", "criu", "/dev/shm", "vectors"} <= seen.keys()
    assert code == (4 if any(f["needed"] and not f["ok"] for f in seen.values()) else 0)


# the process


def on_a_terminal(words: list[str], **environment: str) -> str:
    """What the command writes when stdout is a terminal."""
    leader, follower = pty.openpty()
    tty.setraw(follower)
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    command = [sys.executable, "-m", "layout_advise", *words]
    process = subprocess.Popen(
        command, stdout=follower, stderr=subprocess.DEVNULL, env={**kept, "TERM": "xterm", **environment}
    )
    os.close(follower)
    out = b""
    try:
        while block := os.read(leader, 65536):
            out += block
    except OSError:  # EIO: the other end is closed
        pass
    finally:
        os.close(leader)
        process.wait(timeout=60)
    return out.decode()


def test_colours_on_a_terminal_unless_refused(tmp_path: Path) -> None:
    words = ["report", str(saved(tmp_path / "r"))]
    assert "\x1b[" in on_a_terminal(words)
    assert "\x1b[" not in on_a_terminal(words, NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal([*words, "--color", "never"])


def test_colours_asked_for_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert common.wants_colour("always")
    assert not common.wants_colour("auto")
    assert not common.wants_colour("never")


@pytest.mark.parametrize(
    ("words", "codes"), [(["show", "RUN", "-n", "0"], {141}), (["layout", "--help"], {0, 141})], ids=["show", "help"]
)
def test_a_closed_pipe_is_no_traceback(words: list[str], codes: set[int], tmp_path: Path) -> None:
    run_dir(tmp_path)
    read, write = os.pipe()
    os.close(read)  # as `| head` does, only surely before the first byte is written
    command = [sys.executable, "-m", "layout_advise", *(str(tmp_path) if w == "RUN" else w for w in words)]
    process = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert process.returncode in codes
    assert process.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [["layout", "A_4"], ["layout", "--help"]], ids=" ".join)
def test_a_full_disk_is_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "layout_advise", *words]
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert process.returncode == 1
    assert process.stderr.startswith("layout-advise: ")
    assert "No space left on device" in process.stderr
    assert process.stderr.count("\n") == 1


def test_exit_codes_reach_the_shell() -> None:
    assert run("layout", "A_4").returncode == 0
    assert run("layout", "A_").returncode == 1
    assert run("layout").returncode == 2


def test_an_interrupt_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(_path: Path) -> Trace:
        raise KeyboardInterrupt

    monkeypatch.setattr(show, "read_what_is_there", stop)
    assert main(["show", str(run_dir(tmp_path))]) == 130
    assert capsys.readouterr().err.startswith("layout-advise: interrupted")


def test_layout_says_where_places_have_gone(capsys: pytest.CaptureFixture[str]) -> None:
    term = ["layout", "A_256 ⊗ S_{0,1;4}"]
    assert main([*term, "-q", "--rule", "4@0", "--rule", "7@0", "--map", "text"]) == 0
    assert capsys.readouterr().out == "x -> 256*(x % 4) + x // 4\n"
    assert main([*term, "--rule", "9@1:0", "--map", "c"]) == 0
    out = capsys.readouterr().out
    assert "rule 9 at factor 1: (S_{0;2} ⊗ A_256 ⊗ S_{0;4}) ⊕ (S_{1;2} ⊗ A_256 ⊗ S_{1;4})" in out
    assert "return x + 1024;" in out
    assert main([*term, "-q", "--rule", "8@1:5", "--map", "sympy"]) == 0
    assert capsys.readouterr().out == "Mod(x, 4) + 5*floor(x/4)\n"


@pytest.mark.parametrize("rule", ["9@0", "5@0:3,4", "9@0:", "10@0:1"])
def test_layout_refuses_rules_with_wrong_parameters(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["layout", "A_4", "--rule", rule])
    assert stopped.value.code == 2
    assert "rule" in capsys.readouterr().err
