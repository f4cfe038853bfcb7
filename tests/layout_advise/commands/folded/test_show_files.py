"""What ``show`` writes for other programs: Parquet against CSV, Chrome trace events against their documented schema."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet
import pytest

from layout_advise.cli import main
from layout_advise.commands.folded.show_files import ADDRESSES, COLUMNS
from layout_advise.reports.pages.chrome_trace import CALL, MOST_EVENTS, RUN, events
from layout_advise.rundir import find_trace
from layout_advise.tracer.trace.trace_file import read_trace

# Google's "Trace Event Format" for the two kinds of events that are written
EVENT = {
    "type": "object",
    "required": ["name", "ph", "ts", "pid", "tid", "args"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "cat": {"type": "string"},
        "ph": {"enum": ["X", "M"]},
        "ts": {"type": "number", "minimum": 0},
        "dur": {"type": "number", "minimum": 0},
        "pid": {"type": "integer"},
        "tid": {"type": "integer"},
        "args": {"type": "object"},
    },
    "allOf": [
        {"if": {"properties": {"ph": {"const": "X"}}}, "then": {"required": ["dur"]}},
        {
            "if": {"properties": {"ph": {"const": "M"}}},
            "then": {
                "properties": {
                    "name": {"enum": ["process_name", "thread_name"]},
                    "args": {"required": ["name"], "properties": {"name": {"type": "string"}}},
                }
            },
        },
    ],
    "additionalProperties": False,
}
SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "traceEvents": {"type": "array", "items": EVENT},
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "additionalProperties": False,
}

SOURCE = """#include <stdlib.h>
struct s { double a, b; long key, seen; };
static double table[64];
static inline double twice(double x)
{
    return x * table[0];
}
static inline double more(struct s *p)
{
    return twice(p->a) +
        1;
}
__attribute__((noipa)) void hot(struct s *p, long n)
{
    for (long t = 0; t < 5; t++) {
        for (long i = 0; i < n; i++)
            p[i].b += more(p + i);
        for (long i = t; i < n; i++)
            p[i].seen = p[i].key;
    }
}
__attribute__((noipa)) static void rest(struct s *p, long n)
{
    for (long t = 0; t < 600; t++)
        for (long i = 0; i < n; i++)
            p[i].b *= 0.5;
}
int main(void)
{
    struct s *p = malloc(1000 * sizeof *p);
    for (int i = 0; i < 1000; i++)
        p[i].a = p[i].b = p[i].key = i;
    for (int k = 0; k < 5; k++) { /* too few for a batch, however quick they are */
        hot(p, 1000);
        rest(p, 1000);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("phases")
    (folder / "phases.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-g", "-no-pie", "-o", "phases", "phases.c"], cwd=folder, check=True)
    return folder / "phases"


@pytest.fixture(scope="module")
def run(program: Path) -> Path:
    """The run directory of a trace of that program."""
    folder = program.parent / "run"
    assert main(["trace", "-o", str(folder), "--hotspot", "hot", "--until", "trace", "--", str(program)]) == 0
    return folder


def table(run: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    capsys.readouterr()
    assert main(["show", str(run), "--csv", "-"]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_parquet_is_the_csv(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run), "--parquet", str(tmp_path / "refs.parquet")]) == 0
    read = pyarrow.parquet.read_table(tmp_path / "refs.parquet")
    assert {name: str(read.schema.field(name).type) for name in read.schema.names} == COLUMNS
    lines = table(run, capsys)
    assert len(lines) == read.num_rows > 5
    for line, row in zip(lines, read.to_pylist(), strict=True):
        for name, value in row.items():
            if value is None:
                assert line[name] == ""
            elif name in ADDRESSES:
                assert int(line[name], 16) == value
            else:
                assert line[name] == str(value)
    assert [p.name for p in tmp_path.iterdir()] == ["refs.parquet"]


def test_without_pyarrow_there_is_one_line(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    capsys.readouterr()
    assert main(["show", str(run), "--parquet", str(tmp_path / "refs.parquet")]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "pip install 'layout-advise[parquet]'" in said.err
    assert list(tmp_path.iterdir()) == []


def test_parquet_into_no_folder_is_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["show", str(run), "--parquet", str(tmp_path / "no" / "refs.parquet")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def chrome(run: Path, path: Path) -> list[dict[str, Any]]:
    assert main(["show", str(run), "--chrome", str(path)]) == 0
    data = json.loads(path.read_text())
    jsonschema.validate(data, SCHEMA)
    found: list[dict[str, Any]] = data["traceEvents"]
    return found


def nested(found: list[dict[str, Any]]) -> None:
    """Complete events of one track lie within each other or beside each other, and end where they say."""
    tracks: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in found:
        if event["ph"] == "X":
            tracks.setdefault((event["pid"], event["tid"]), []).append(event)
    for track in tracks.values():
        open_until: list[float] = []
        for event in sorted(track, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            assert not open_until or event["ts"] + event["dur"] <= open_until[-1]
            open_until.append(event["ts"] + event["dur"])


def test_chrome_events_are_valid_and_nested(run: Path, tmp_path: Path) -> None:
    found = chrome(run, tmp_path / "trace.json")
    nested(found)
    names = {(e["pid"], e["name"]) for e in found if e["ph"] == "X"}
    assert {(RUN, "sample"), (RUN, "trace"), (CALL, "hot")} <= names
    trace = read_trace(find_trace(run))
    call = next(e for e in found if e["pid"] == CALL and e["name"] == "hot")
    assert (call["ts"], call["dur"], call["args"]["accesses"]) == (0, trace.accesses, trace.accesses)
    outer = [e for e in found if e.get("cat") == "loop" and e["args"].get("iterations") == 5]
    assert len(outer) == 1
    inner = [
        e["args"]["iterations"] for e in found if e.get("cat") == "loop" and "accesses" in e["args"] and e is not outer[0]
    ]
    # sweeps of 1000, then of 1000 - t
    assert inner.count(1000) + inner.count(999) >= 5
    assert (
        sum(e["dur"] for e in found if e.get("cat") == "loop" and e["args"].get("iterations") in range(995, 1001))
        <= (outer[0]["dur"])
    )


def test_stages_follow_each_other(run: Path, tmp_path: Path) -> None:
    stages = [e for e in chrome(run, tmp_path / "trace.json") if e.get("cat") == "stage"]
    assert [e["name"] for e in stages] == ["sample", "trace"]
    assert stages[0]["ts"] + stages[0]["dur"] <= stages[1]["ts"]


@pytest.mark.parametrize("born", [0.1, 1414.381572, 0.7])
def test_stages_never_overlap(run: Path, born: float) -> None:
    ends = [born + k * 0.263723666 for k in range(400)]
    stages = [(f"s{k}", start, ends[k + 1] - start) for k, start in enumerate(ends[:-1])]
    nested(events(read_trace(find_trace(run)), stages)["traceEvents"])


def test_a_run_without_stages_still_draws_the_call(run: Path, tmp_path: Path) -> None:
    found = events(read_trace(find_trace(run)))["traceEvents"]
    assert {e["pid"] for e in found} == {CALL}
    assert len(found) < MOST_EVENTS + 10


def test_inlined_chains_are_those_of_addr2line(run: Path, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = table(run, capsys)
    checked = 0
    for line in lines:
        said = subprocess.run(
            ["addr2line", "-i", "-f", "-e", str(program), line["pc"]], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        frames = [(said[k], said[k + 1].split(" ")[0]) for k in range(0, len(said), 2)]
        assert frames[0][1].rsplit("/", 1)[-1] == f"{Path(line['file']).name}:{line['line']}"
        chain = [part.split(" at ") for part in line["inlined"].split("; ")] if line["inlined"] else []
        assert [name for name, _ in chain] == [name for name, _ in frames[:-1]]
        assert [Path(place).name for _, place in chain] == [Path(place).name for _, place in frames[1:]]
        checked += len(chain)
    assert checked >= 3  # p->a is read in twice, in more, in hot
    assert any(len(line["inlined"].split("; ")) == 2 for line in lines)


def test_fields_are_counted_by_loop(run: Path) -> None:
    trace = read_trace(find_trace(run))
    block = next(o for o in trace.objects if o.kind == "heap")
    assert (block.name, block.type, block.bytes, block.element_bytes) == ("p", "s", 32_000, 32)
    assert block.site is not None
    assert block.site.startswith("phases.c:")
    assert (block.low, block.high) == (block.base, block.base + 31_999)
    uses = {f.name: [(u.reads, u.writes) for u in f.uses] for f in block.fields}
    for field in block.fields:
        assert (sum(u.reads for u in field.uses), sum(u.writes for u in field.uses)) == (field.reads, field.writes)
    later = sum(1000 - t for t in range(5))
    assert uses == {"a": [(5000, 0)], "b": [(5000, 5000)], "key": [(later, 0)], "seen": [(0, later)]}
    loop = {f.name: f.uses[0].loop for f in block.fields}
    assert loop["a"] == loop["b"] != loop["key"] == loop["seen"]
    assert None not in loop.values()
    first, second = (trace.loops[loop[name] or 0] for name in ("a", "key"))
    assert first.parent == second.parent
    assert first.parent is not None
    assert trace.loops[first.parent].parent is None


def test_show_tells_structures_loops_and_order(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["show", str(run), "-v"]) == 0
    text = capsys.readouterr().out
    assert "\n  p: heap block " in text
    assert " of 32,000 bytes from phases.c:" in text
    assert "the whole of it" in text
    assert "  5,000 reads  5,000 writes  in loop " in text
    assert "twice inlined at phases.c:10, more inlined at phases.c:17\n" in text
    assert "\norder of execution: " in text
    assert "for 5 (i) { for " in text.split("order of execution: ")[1]


def test_show_needs_no_program(run: Path, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["show", str(run)]) == 0
    before = capsys.readouterr().out
    hidden = program.with_name("hidden")
    program.rename(hidden)
    try:
        assert main(["show", str(run)]) == 0
    finally:
        hidden.rename(program)
    after = capsys.readouterr().out
    assert [text for text in after.splitlines() if "phases.c" in text] == [
        text for text in before.splitlines() if "phases.c" in text
    ]


def test_a_cut_file_is_shown_and_named(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = find_trace(run).read_bytes()
    (tmp_path / "trace.lat").write_bytes(data[:-5])
    capsys.readouterr()
    assert main(["show", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "is incomplete: only the first" in said.err
    assert "truncated" in said.out.splitlines()[0]
    assert "not whole: only the first" in said.out
    (tmp_path / "trace.lat").write_bytes(data[:30])
    assert main(["show", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
