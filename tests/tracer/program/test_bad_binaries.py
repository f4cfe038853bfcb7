"""Files that cannot be analysed are refused in one line that names the reason, before anything runs."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

from layout_advise.checks import check_command
from layout_advise.errors import BinaryError, UsageError
from layout_advise.tracer.program.binary import ElfBinary

SOURCE = "int work(int n) { return n * 3; }\nint main(int c, char **v) { return work(c) == 0 || v == 0; }\n"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    (folder / "app.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "-o", folder / "app", folder / "app.c"], check=True)
    return folder / "app"


def _build(good: Path, out: Path, *flags: str) -> Path:
    subprocess.run(["gcc", *flags, "-o", out, good.parent / "app.c"], check=True)
    return out


def refusal(path: Path) -> str:
    with pytest.raises(BinaryError) as caught:
        check_command([str(path)])
    line = str(caught.value)
    assert "\n" not in line
    assert caught.value.why
    assert caught.value.hint
    assert caught.value.exit_code == 1
    return line


def test_good_program_is_accepted(good: Path) -> None:
    binary = check_command([str(good), "1"])
    assert binary.dynamic
    assert binary.warnings == ()


def test_missing_file(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "nothing")


def test_directory(tmp_path: Path) -> None:
    assert "directory" in refusal(tmp_path)


def test_fifo_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in refusal(tmp_path / "pipe")


def test_script_names_its_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/usr/bin/env bash\nexec ./app\n")
    script.chmod(0o755)
    assert "/usr/bin/env bash" in refusal(script)


@pytest.mark.parametrize(("content", "word"), [(b"", "empty"), (b"PK\3\4 something", "not an ELF")])
def test_other_files(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    path.chmod(0o755)
    assert word in refusal(path)


def _patched(good: Path, out: Path, offset: int, value: bytes) -> Path:
    data = bytearray(good.read_bytes())
    data[offset : offset + len(value)] = value
    out.write_bytes(data)
    out.chmod(0o755)
    return out


def test_arm_and_32_bit(good: Path, tmp_path: Path) -> None:
    assert "ARM" in refusal(_patched(good, tmp_path / "arm", 18, struct.pack("<H", 0x28)))
    assert "32-bit" in refusal(_patched(good, tmp_path / "i386", 18, struct.pack("<H", 3)))
    assert "32-bit" in refusal(_patched(good, tmp_path / "x32", 4, b"\x01"))


def test_object_file_and_library(good: Path, tmp_path: Path) -> None:
    assert "not linked" in refusal(_build(good, tmp_path / "app.o", "-c"))
    library = _build(good, tmp_path / "libapp.so", "-shared", "-fPIC")
    assert "shared library" in refusal(library)
    assert ElfBinary.open_module(library).find("work").name == "work"


@pytest.mark.parametrize("flag", ["-static", "-static-pie"])
def test_static_names_what_can_be_had(good: Path, tmp_path: Path, flag: str) -> None:
    line = refusal(_build(good, tmp_path / "static", flag))
    assert "statically" in line
    assert "--backend valgrind --until trace" in line


@pytest.mark.parametrize(("mode", "word"), [(0o4755, "setuid"), (0o2755, "setgid")])
def test_setuid(good: Path, tmp_path: Path, mode: int, word: str) -> None:
    copy = _patched(good, tmp_path / "suid", 0, b"\x7f")
    copy.chmod(mode)
    assert word in refusal(copy)


def test_not_executable(good: Path, tmp_path: Path) -> None:
    copy = _patched(good, tmp_path / "plain", 0, b"\x7f")
    copy.chmod(0o644)
    assert "not executable" in refusal(copy)


@pytest.mark.parametrize("kept", [20, 63, 100, 2000, -1500])
def test_truncated_file(good: Path, tmp_path: Path, kept: int) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(good.read_bytes()[:kept])
    cut.chmod(0o755)
    assert "cannot analyse" in refusal(cut)


def test_stripped_goes_on_with_a_warning(good: Path, tmp_path: Path) -> None:
    stripped = _build(good, tmp_path / "stripped", "-s", "-O1", "-rdynamic")
    binary = check_command([str(stripped)])
    assert any("rebuild with -g" in w for w in binary.warnings)
    assert binary.find("work").size > 0


def test_command_itself(tmp_path: Path, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError):
        check_command([])
    with pytest.raises(UsageError, match="no directory"):
        check_command([str(good)], tmp_path / "nowhere")
    with pytest.raises(BinaryError, match=r"did you mean \./app"):
        check_command(["app"], good.parent)
    with pytest.raises(BinaryError, match=r"did you mean \./app"):
        check_command(["appp"], good.parent)
    monkeypatch.setenv("PATH", f"{good.parent}:{os.environ['PATH']}")
    assert check_command(["app"]).path == good
    assert check_command(["./app"], good.parent).path.samefile(good)


def test_no_such_function_names_near_ones(good: Path) -> None:
    with pytest.raises(BinaryError, match="did you mean work"):
        ElfBinary.open(good).find("wrok")
