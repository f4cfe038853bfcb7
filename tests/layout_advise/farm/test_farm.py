"""The farm on this machine: what fails is a row and stops nothing, what is there is not made again, nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import slower
from tests.support.command import run_command
from tests.support.farm_lists import HEEDING, alone, farm, is_alive, summary_of, wait_for, write_list

BAD = """
[defaults]
build_limit = 120
[[program]]
name = "quick"
fetch = "echo 'int main(void) { return X; }' > quick.c"
build = "cc $FLAGS -o quick quick.c"
input = "echo hello > word"
stdin = "$INPUT/word"
run = "$BUILD/quick"
flags = { zero = "-DX=0", three = "-DX=3" }
[[program]]
name = "gone"
run = "$BUILD/none"
[[program]]
name = "nosource"
fetch = "echo no such package >&2; exit 1"
run = "$BUILD/x"
[[program]]
name = "broken"
build = "cc -o x none.c"
run = "$BUILD/x"
[[program]]
name = "noinput"
input = "exit 3"
run = "true"
[[program]]
name = "hangs"
run = "sleep 1000"
limit = 0.5
[[program]]
name = "slowbuild"
build = "sleep 1000"
build_limit = 0.5
run = "true"
[[program]]
name = "last"
run = "echo done"
"""


@pytest.mark.slow
def test_what_fails_is_told_in_its_row_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(BAD)
    report = farm(tmp_path / "list.toml", "--native")
    told = {row.run: (row.status, row.exit_status) for row in report.rows}
    assert told == {
        "quick.zero": ("native", 0),
        "quick.three": ("native", 3),
        "gone": ("missing", None),
        "nosource": ("fetch-failed", None),
        "broken": ("build-failed", None),
        "noinput": ("input-failed", None),
        "hangs": ("timed-out", None),
        "slowbuild": ("build-failed", None),
        "last": ("native", 0),
    }
    why = {row.run: row.why for row in report.rows}
    assert "no such package" in why["nosource"]
    assert "exit status 3" in why["noinput"]
    assert why["hangs"] == "took more than 0.5 s"
    assert why["slowbuild"].startswith("build took more than 0.5 s")
    out = tmp_path / "out"
    assert (out / "farm.csv").read_text().count("\n") == 10
    assert "no such package" in (out / "farm.html").read_text()


def test_output_that_differs_is_told(tmp_path: Path) -> None:
    report = farm(write_list(tmp_path, same="echo 1", other="date +%N"), "--native")
    assert [row.same_output for row in report.rows] == [True, False]


def test_a_run_without_a_report_says_what_trace_said(tmp_path: Path) -> None:
    """A script is no program that can be traced: refused at once, by name."""
    (tmp_path / "script").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "script").chmod(0o755)
    (tmp_path / "list.toml").write_text("[[program]]\nname = 'script'\nrun = '$LIST/script'\n")
    report = farm(tmp_path / "list.toml")
    assert [(row.status, row.exit_status) for row in report.rows] == [("failed", 1)]
    assert "script" in report.rows[0].why
    assert [(one.reason, one.programs) for one in report.blockers] == [("failed", ("script",))]


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    count = f"echo x >> {tmp_path}/count"
    listing = write_list(tmp_path, first=count)
    farm(listing, "--native")
    write_list(tmp_path, first=count, second=count)
    report = farm(listing, "--native")
    assert [row.run for row in report.rows] == ["first", "second"]
    assert (tmp_path / "count").read_text().count("x") == 4  # natively each runs twice
    write_list(tmp_path, first=f"{count}; exit 1", second=count)  # another command is another run
    assert [row.exit_status for row in farm(listing, "--native").rows] == [1, 0]
    assert (tmp_path / "count").read_text().count("x") == 6
    farm(listing, "--native", "--again", "all", "--only", "second")
    assert (tmp_path / "count").read_text().count("x") == 8
    assert [row.run for row in farm(listing, "--native", "--summary").rows] == ["first", "second"]


def test_a_build_is_made_once_and_again_when_its_script_changes(tmp_path: Path) -> None:
    text = "[[program]]\nname = 'a'\nfetch = 'echo f >> $LIST/log'\nbuild = 'echo b{} >> $LIST/log'\nrun = 'true'\n"
    listing = tmp_path / "list.toml"
    for number in (1, 1, 2):
        listing.write_text(text.format(number))
        farm(listing, "--native", "--again", "all")
    assert (tmp_path / "log").read_text().split() == ["f", "b1", "b2"]


def test_a_failed_run_is_repeated_when_asked_for(tmp_path: Path) -> None:
    listing = tmp_path / "list.toml"
    listing.write_text("[[program]]\nname = 'a'\nrun = '$LIST/a'\n")
    assert farm(listing, "--native").rows[0].status == "missing"
    (tmp_path / "a").write_text("#!/bin/sh\n")
    (tmp_path / "a").chmod(0o755)
    assert farm(listing, "--native").rows[0].status == "missing"
    assert farm(listing, "--native", "--again", "failed").rows[0].status == "native"


@pytest.mark.parametrize("number", [signal.SIGINT, *slower((signal.SIGTERM,))])
def test_an_interrupt_leaves_nothing_and_the_next_farm_does_the_rest(number: signal.Signals, tmp_path: Path) -> None:
    """Also a process that has left its session is ended; the row that was there stays."""
    hang = f"test -e {tmp_path}/again || {{ setsid sleep 1000 & echo $! > {tmp_path}/pid; wait; }}"
    listing = write_list(tmp_path, first="true", second=hang, third="true")
    command = [*HEEDING, sys.executable, "-m", "layout_advise", "farm", str(listing)]
    command += ["-o", str(tmp_path / "out"), "-q", "--native"]
    environment = {**os.environ, **alone(tmp_path)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    pid = tmp_path / "pid"
    wait_for(lambda: pid.exists() and pid.read_text().strip())
    process.send_signal(number)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 128 + number
    assert said.startswith("layout-advise: interrupted")
    assert said.count("\n") == 1
    assert not is_alive(int(pid.read_text()))
    (tmp_path / "again").touch()
    before = (tmp_path / "out" / "rows").glob("*/first.native.json").__next__().read_bytes()
    farm(listing, "--native")
    assert [row.status for row in summary_of(listing).rows] == ["native"] * 3
    assert (tmp_path / "out" / "rows").glob("*/first.native.json").__next__().read_bytes() == before


LEFT_BEHIND = """
import asyncio
from pathlib import Path
from layout_advise.farm.run_job import Order
from layout_advise.farm.schedule import work_off
order = Order(session="1", output=Path("out"), work=Path("work"), options=(), version="1", native=True)
work_off(lambda machines: (), order, None, lambda job, machine, outcome: None)
loop = asyncio.new_event_loop()
loop.create_future().set_exception(TimeoutError("Timeout"))
loop.close()
"""


def test_a_future_that_an_interrupt_left_behind_says_nothing(tmp_path: Path) -> None:
    """Dask leaves one now and then; it is told as it is freed, below the one line of the interrupt."""
    done = subprocess.run([sys.executable, "-c", LEFT_BEHIND], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_what_a_program_leaves_running_is_ended(tmp_path: Path) -> None:
    listing = write_list(tmp_path, leaves=f"setsid sleep 1000 & echo $! > {tmp_path}/pid")
    assert farm(listing, "--native").rows[0].exit_status == 0
    assert not is_alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--only", "none"], "no program none in the list; it has a"),
        (["--everywhere"], "--everywhere needs --scheduler: this machine is the only one"),
    ],
)
def test_usage_is_told(options: list[str], told: str, tmp_path: Path) -> None:
    done = run_command("farm", write_list(tmp_path, a="true"), "-o", tmp_path / "out", *options)
    assert (done.returncode, done.stderr) == (2, f"layout-advise: {told}\n")


@pytest.mark.slow
def test_a_program_is_traced_and_its_verdict_is_in_the_table(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(
        "[[program]]\nname = 'victim'\nfiles = ['victim.c']\nbuild = 'cc $FLAGS -o victim $LIST/victim.c'\n"
        "flags = { O2 = '-O2 -g' }\nrun = '$BUILD/victim plain 60000 4000'\noptions = '--candidates 2'\n"
    )
    source = Path(__file__).resolve().parents[2] / "road" / "victim.c"
    (tmp_path / "victim.c").write_bytes(source.read_bytes())
    (row,) = farm(tmp_path / "list.toml").rows
    assert (row.status, row.symbol) == ("done", "work")
    assert row.action is not None
    assert row.share is not None
    assert row.share > 0.5
    page = (tmp_path / "out" / "farm.html").read_text()
    assert f'href="runs/{row.machine}/victim.O2/report.html"' in page
    assert (tmp_path / "out" / "runs" / row.machine / "victim.O2" / "report.json").is_file()
