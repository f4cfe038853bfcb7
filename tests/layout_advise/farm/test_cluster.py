"""The farm on a dask cluster: two workers, as two machines."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import run_command
from tests.support.farm_lists import HEEDING, cluster, farm, is_alive, wait_for, write_list


def test_two_workers_share_the_runs_and_do_not_disturb_each_other(tmp_path: Path) -> None:
    """These two are one machine: a run that finds another one under way fails."""
    alone = f"mkdir {tmp_path}/busy && sleep 0.3 && rmdir {tmp_path}/busy"
    listing = write_list(tmp_path, **{f"p{n}": alone for n in range(6)})
    with cluster(tmp_path, "one", "two") as address:
        report = farm(listing, "--native", "--scheduler", address)
    assert [(row.run, row.exit_status) for row in report.rows] == [(f"p{n}", 0) for n in range(6)]
    assert {row.machine for row in report.rows} <= {"one", "two"}


def test_every_machine_makes_every_run_and_they_are_compared(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(
        "[[program]]\nname = 'a'\nrun = '$LIST/none'\n[[program]]\nname = 'b'\nrun = 'true'\n"
    )
    with cluster(tmp_path, "one", "two") as address:
        report = farm(tmp_path / "list.toml", "--native", "--scheduler", address, "--everywhere")
    assert [(row.run, row.machine, row.status) for row in report.rows] == [
        ("a", "one", "missing"),
        ("a", "two", "missing"),
        ("b", "one", "native"),
        ("b", "two", "native"),
    ]
    assert [(one.run, one.machines, one.agree) for one in report.comparisons] == [
        ("a", ("one", "two"), True),
        ("b", ("one", "two"), True),
    ]


def test_an_interrupt_ends_the_runs_on_the_workers(tmp_path: Path) -> None:
    listing = write_list(tmp_path, hangs=f"echo $$ > {tmp_path}/pid; sleep 1000", other="true")
    with cluster(tmp_path, "one") as address:
        words = [str(listing), "-o", str(tmp_path / "out"), "-q", "--native", "--scheduler", address]
        process = subprocess.Popen(
            [*HEEDING, sys.executable, "-m", "layout_advise", "farm", *words], stderr=subprocess.PIPE, text=True
        )
        pid = tmp_path / "pid"
        wait_for(lambda: pid.exists() and pid.read_text().strip())
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=100)
        assert (process.returncode, said.count("\n")) == (130, 1), said
        assert not is_alive(int(pid.read_text()))
        write_list(tmp_path, hangs="true", other="true")  # the worker still works
        report = farm(listing, "--native", "--scheduler", address)
    assert [row.status for row in report.rows] == ["native", "native"]


@pytest.mark.slow
def test_a_scheduler_that_is_none_is_told(tmp_path: Path) -> None:
    words = ["--scheduler", "tcp://127.0.0.1:1", "--native"]
    done = run_command("farm", write_list(tmp_path, a="true"), "-o", tmp_path / "out", *words)
    assert done.returncode == 4
    assert done.stderr.startswith("layout-advise: no scheduler at tcp://127.0.0.1:1: ")
    assert done.stderr.count("\n") == 1


def test_a_cluster_without_workers_is_told(tmp_path: Path) -> None:
    with cluster(tmp_path) as address:
        done = run_command(
            "farm", write_list(tmp_path, a="true"), "-o", tmp_path / "out", "--native", "--scheduler", address
        )
    assert done.returncode == 4
    assert "it has no workers; start one a machine: dask worker" in done.stderr
