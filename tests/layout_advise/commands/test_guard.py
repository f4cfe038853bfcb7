"""``layout-advise guard``: the file, exit codes, times, and bad input."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import msgspec
import pytest

from layout_advise.cli import main
from layout_advise.commands import guard as command
from layout_advise.guard import again
from layout_advise.guard.guard_file import read_guard
from layout_advise.guard.policy import GUARD
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.reports.model import contract
from tests.support.changed.compared_runs import before, timed, with_region
from tests.support.changed.guarded_programs import item_report, source

MAIN = """
int main(void) {
  static struct item p[1000];
  double s = 0;
  for (int k = 0; k < 30; k++) s += use(p, 1000);
  return s != 0;
}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program, the report of a run of it, and its guard ``layout.guard``; the present folder."""
    (tmp_path / "app.c").write_text(source(main=MAIN))
    subprocess.run("gcc -g -O1 -fno-inline -w -o app app.c", shell=True, cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.json").write_bytes(contract.encode(item_report(tmp_path / "app")))
    assert main(["guard", "report.json", "-o", "layout.guard"]) == 0
    return tmp_path


def rebuilt(old: str, new: str) -> None:
    Path("app.c").write_text(source(main=MAIN).replace(old, new))
    subprocess.run("gcc -g -O1 -fno-inline -w -o app app.c", shell=True, check=True)


def test_a_small_file_to_review(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["guard", "report.json", "-f", "-o", "layout.guard"]) == 0
    said = capfd.readouterr()
    assert said.out == "guarded: item\n"
    assert "the run advises another layout; this guards the present one" in said.err
    text = (project / "layout.guard").read_text()
    assert 'uses = ["p (item): x"]' in text
    assert 'x            = { at =    0, bytes =   8, type = "double" }\n' in text
    assert "first_bit = 640, bits = 3 }" in text
    assert main(["guard", "report.json"]) == 0
    assert capfd.readouterr().out == text


def test_checks(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["guard", "--check", "layout.guard", "--", "./app"]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "./app has the guarded layout: item"
    rebuilt("double x;\n  double y", "double y;\n  double x")
    assert main(["guard", "--check", "layout.guard", "--", "./app", "its", "-x", "args"]) == 3
    assert capfd.readouterr().out.splitlines() == [
        "item.x was at byte 0 (8 bytes), is at byte 8 (8 bytes)",
        "item.y was at byte 8 (8 bytes), is at byte 0 (8 bytes)",
        "  use rests on it: p (item): x",
    ]


@pytest.mark.slow
def test_times_are_kept_and_taken_again(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(again, "GUARD", dataclasses.replace(GUARD, rounds=2))
    assert main(["guard", "report.json", "--measure", "-f", "-o", "layout.guard"]) == 0
    (region,) = read_guard(project / "layout.guard").region
    assert len(region.times_ns) == 2
    capfd.readouterr()
    code = main(["guard", "--check", "layout.guard", "--measure", "--", "./app"])
    out = capfd.readouterr().out
    assert f"times the guard's: {'slower' if code == 3 else 'not slower'}" in out
    text = (project / "layout.guard").read_text()
    (project / "layout.guard").write_text(text.replace('cpu = "', 'cpu = "not '))
    assert main(["guard", "--check", "layout.guard", "--measure", "--", "./app"]) == 0
    assert "not compared: the guard's times are of another processor" in capfd.readouterr().out


@pytest.mark.parametrize(("low", "code"), [(1.2, 3), (1.05, 0)])
def test_a_slower_region_is_an_alarm(low: float, code: int, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = again.Again("step", (1.0,), Ratio(1.3, low, 1.4, 7))
    monkeypatch.setattr(command, "measured_again", lambda *_: (found,))
    assert main(["guard", "--check", "layout.guard", "--measure", "--", "./app"]) == code


REFUSED = [
    (["guard"], 2, "no run to guard"),
    (["guard", "--check", "layout.guard"], 2, "no program to check"),
    (["guard", "--check", "nothing", "--", "./app"], 2, "no such file or folder: nothing"),
    (["guard", "--check", "layout.guard", "-o", "x", "--", "./app"], 2, "-o does not go with --check"),
    (["guard", "report.json", "-o", "layout.guard"], 1, "layout.guard is there already; replace it with -f"),
    (["guard", "--check", "app.c", "--", "./app"], 1, "it is not TOML"),
    (["guard", "--check", "app", "--", "./app"], 1, "it is not TOML"),
    (["guard", "--check", "other.toml", "--", "./app"], 1, "its format is None"),
    (["guard", "--check", "damaged.toml", "--", "./app"], 1, "it is damaged"),
    (["guard", "--check", "layout.guard", "--", "./none"], 1, "there is no such file"),
    (["guard", "--check", "layout.guard", "--", "./app.c"], 1, "it is not an ELF file"),
    (["guard", "--check", "layout.guard", "--", "./bare"], 1, "it has no debug information; build it with -g"),
    (["guard", "--check", "layout.guard", "--", "./lines"], 1, "its types are not described"),
]


@pytest.mark.parametrize(("line", "code", "why"), REFUSED, ids=[" ".join(line) for line, *_ in REFUSED])
def test_bad_input(line: list[str], code: int, why: str, project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "other.toml").write_text("x = 1\n")
    (project / "damaged.toml").write_text('format = "layout-advise.guard/1"\nprogram = 7\n')
    for name, flag in (("bare", "-g0"), ("lines", "-g1")):
        subprocess.run(["gcc", flag, "-w", "-o", name, "app.c"], check=True)
    capfd.readouterr()
    assert main(line) == code
    said = capfd.readouterr()
    assert said.out == ""
    (text,) = said.err.splitlines()
    assert text.startswith("layout-advise: ")
    assert why in text


def test_a_program_that_was_built_anew_is_not_guarded(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rebuilt("double x;\n  double y", "double y;\n  double x")
    assert main(["guard", "report.json", "-f", "-o", "layout.guard"]) == 1
    assert "it was built anew since it was traced" in capfd.readouterr().err


def test_the_gain_over_an_earlier_run(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    now, old = item_report(project / "app"), before()
    times = msgspec.structs.replace(now.hotspots[0], original=timed(100.0, 101.0, 102.0, 103.0, 104.0))
    (project / "report.json").write_bytes(contract.encode(msgspec.structs.replace(now, hotspots=(times,))))
    earlier = with_region(msgspec.structs.replace(old, command=now.command), symbol="use")
    (project / "before.json").write_bytes(contract.encode(earlier))
    capfd.readouterr()
    assert main(["guard", "report.json", "--baseline", "before.json", "-f", "-o", "layout.guard"]) == 0
    (region,) = read_guard(project / "layout.guard").region
    assert region.gain is not None
    assert (round(region.gain[0]), region.over) == (3, "before.json")
    rebuilt("double x;\n  double y", "double y;\n  double x")
    assert main(["guard", "--check", "layout.guard", "--", "./app"]) == 3
    assert "use rests on it, 2.99 times as fast as before.json: p (item): x" in capfd.readouterr().out


def test_a_run_without_the_region_is_no_baseline(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "before.json").write_bytes(contract.encode(before()))
    capfd.readouterr()
    assert main(["guard", "report.json", "--baseline", "before.json", "-f", "-o", "layout.guard"]) == 0
    assert "use: no gain is written down: before.json does not have it" in capfd.readouterr().err
    assert read_guard(project / "layout.guard").region[0].gain is None
