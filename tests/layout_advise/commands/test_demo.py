"""``demo`` with what comes along, and ``doctor --install``; nothing of the system is changed here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.commands import demo, doctor, installing
from layout_advise.commands.doctoring.diagnosis import Diagnosis
from layout_advise.errors import MachineError
from tests.support.paths import ROOT


def test_the_recorded_run_shows_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "demo.layout"
    assert main(["demo", "--recorded", "-o", str(run)]) == 0
    assert capsys.readouterr().out.startswith("Store `particle` as")
    assert "update_pressure" in (run / "report.html").read_text()
    assert main(["show", str(run)]) == 0
    assert "particles.c:16" in capsys.readouterr().out
    assert main(["compare", str(run), str(run)]) == 0
    assert main(["demo", "--recorded", "-o", str(run)]) == 1
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize("name", demo.EXAMPLES)
def test_an_example_is_built_from_a_copy(name: str, tmp_path: Path) -> None:
    program = demo.build(name, tmp_path / "a" / "b")
    assert sorted(file.name for file in program.parent.iterdir()) == sorted([name, f"{name}.c", "common.h", "Makefile"])
    plain = subprocess.run([program, "1000", "3"], capture_output=True, text=True, check=True).stdout
    program.unlink()
    subprocess.run(["make", "-s"], cwd=program.parent, check=True)
    assert subprocess.run([program, "1000", "3"], capture_output=True, text=True, check=True).stdout == plain


def test_no_room_for_an_example_is_an_error_of_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.program").write_text("a file in the way")
    assert main(["demo", "-o", str(tmp_path / "x.layout")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("layout-advise: cannot write the example")
    assert said.count("\n") == 1


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what would have been installed; the machine lacks clang and CRIU until it is."""
    done: list[str] = []

    def lacks(name: str, *packages: str) -> Callable[[], Diagnosis]:
        return lambda: Diagnosis(name, name in done, False, "", packages=packages)

    monkeypatch.setattr(
        doctor, "CHECKS", (lacks("clang", "clang"), lacks("criu"), lambda: Diagnosis("vectors", True, False, ""))
    )
    monkeypatch.setattr(installing, "install_packages", done.extend)
    monkeypatch.setattr(installing, "install_criu", lambda: done.append("criu"))
    return done


def test_install_sets_up_what_is_missing(installed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--install", "criu"]) == 0
    assert installed == ["criu"]
    assert main(["doctor", "--install"]) == 0
    assert installed == ["criu", "clang"]
    assert "absent" not in capsys.readouterr().out.split("clang", 2)[2]
    assert main(["doctor", "--install"]) == 0
    assert installed == ["criu", "clang"]
    assert main(["doctor", "--install", "vectors"]) == 2
    assert "what it can: clang, criu" in capsys.readouterr().err


def test_what_cannot_be_installed_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise MachineError("cannot install CRIU", "no network", "install it by hand")

    monkeypatch.setattr(doctor, "CHECKS", (lambda: Diagnosis("criu", False, False, "none"),))
    monkeypatch.setattr(installing, "install_criu", fail)
    assert main(["doctor", "--install"]) == 0
    said = capsys.readouterr()
    assert "cannot install CRIU: no network; install it by hand" in said.err
    assert "absent" in said.out


def test_packages_are_installed_by_root_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/apt-get")
    with pytest.raises(MachineError, match="as root: apt-get install valgrind"):
        installing.install_packages(["valgrind"])
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(MachineError, match="no apt-get"):
        installing.install_packages(["valgrind"])


def test_the_image_has_what_doctor_asks_for() -> None:
    asked = {package for check in doctor.CHECKS for package in check().packages}
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    installs = re.search(r"--no-install-recommends ([a-z0-9 -]+)", text)
    assert installs is not None
    assert set(installs[1].split()) == asked | {"binutils", "ca-certificates", "python3", "python3-venv"}
