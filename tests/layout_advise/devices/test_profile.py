"""What is read of another machine, and what is refused before anything is run."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from layout_advise.cli import main
from layout_advise.commands.trace import transfer
from layout_advise.devices.profile import read_profiles
from layout_advise.errors import RunDirError, UsageError
from layout_advise.reports.model.contract import Report, encode
from layout_advise.reports.model.plan import Transfer
from tests.support.sample_report import report

STATED = Transfer(2e9, 7000.0)
COMMAND = ("/elsewhere/app", "5")


def kept(folder: Path, one: Report) -> Path:
    folder.mkdir(parents=True)
    (folder / "report.json").write_bytes(encode(one))
    return folder


def test_a_run_is_a_machine(tmp_path: Path) -> None:
    one = replace(report(), command=("./app", "5"))
    first = kept(tmp_path / "a" / "two.layout", one)
    second = kept(tmp_path / "b" / "two.layout", replace(one, transfer=Transfer(1e9, 1.0)))
    found = read_profiles([first, second / "report.json"], COMMAND, STATED)
    assert [p.machine.name for p in found] == ["two", "two (2)"]
    assert [(p.machine.transfer, p.machine.assumed) for p in found] == [(STATED, True), (Transfer(1e9, 1.0), False)]
    assert found[0].machine.cpu == "Some CPU"


def test_no_number_is_made_up(tmp_path: Path) -> None:
    path = kept(tmp_path / "two.layout", replace(report(), command=("./app", "5")))
    with pytest.raises(UsageError, match="does not say how long data takes") as caught:
        read_profiles([path], COMMAND, None)
    assert "--transfer" in caught.value.hint


def test_other_work_is_refused(tmp_path: Path) -> None:
    path = kept(tmp_path / "two.layout", replace(report(), command=("./app", "6")))
    with pytest.raises(UsageError, match="there the arguments were 6"):
        read_profiles([path], COMMAND, STATED)
    with pytest.raises(UsageError, match="a run of app, not of other"):
        read_profiles([path], ("other", "6"), STATED)
    with pytest.raises(RunDirError):
        read_profiles([tmp_path / "nothing"], COMMAND, STATED)


def test_the_command_refuses_it_before_the_program_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = kept(tmp_path / "two.layout", replace(report(), command=("true", "5")))
    words = ["trace", "-o", str(tmp_path / "new.layout"), "--machine-profile", str(path), "--", "/bin/true", "5"]
    assert main(words) == 2
    assert "state it: --transfer" in capfd.readouterr().err
    assert not (tmp_path / "new.layout").exists()


def test_a_transfer_is_a_rate_and_a_latency(capfd: pytest.CaptureFixture[str]) -> None:
    assert transfer("12G,5") == (12 * 1024**3, 5000.0)
    assert transfer("1000,0.5") == (1000.0, 500.0)
    for wrong in ("12G", "12G,-1", "0,1", "x,1", "1,nan"):
        with pytest.raises(SystemExit):
            main(["trace", "--transfer", wrong, "--", "/bin/true"])
    assert "--transfer" in capfd.readouterr().err
