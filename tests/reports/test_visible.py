"""Control characters in what is foreign (names, paths, source text) do not reach the terminal, whatever prints them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest

from layout_advise.cli import main
from layout_advise.reports.model.contract import Report, encode
from layout_advise.reports.pages import terminal
from layout_advise.reports.pages.console import guarded, styled
from layout_advise.reports.words.visible import visible
from tests.support.sample_report import report

HOSTILE = "a\x1b[2J\x1b]0;title\x07b\x9bc\x7fd\re\u202ef\u2066g\x00h"
SPELLED = r"a\x1b[2J\x1b]0;title\x07b\u009bc\u007fd\x0de\u202ef\u2066g\x00h"
STEERING = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), 0x2066)}


def with_names(shown: Report, hostile: str) -> Report:
    """The report with ``hostile`` at the end of every text that is no word of the contract."""
    words = {"keep", "change", "undecided", "measured-gain", "c1", "c2", "s0"}
    keys = {"name", "symbol", "text", "type", "command", "module", "cpu", "note", "reason", "instruction", "change"}

    def walked(value: object, key: str) -> object:
        if isinstance(value, dict):
            return {name: walked(inner, name) for name, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [walked(inner, key) for inner in value]
        return f"{value}{hostile}" if isinstance(value, str) and key in keys and value not in words else value

    return msgspec.convert(walked(msgspec.to_builtins(shown), ""), Report)


def test_control_characters_are_spelled_out() -> None:
    assert visible(HOSTILE) == SPELLED
    assert visible("tab\tline\n«ü» 日本 ⊗") == "tab\tline\n«ü» 日本 ⊗"


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("verbose", [False, True])
def test_the_report_on_a_terminal_has_its_own_colours_only(colour: bool, verbose: bool) -> None:
    hostile = with_names(report(), HOSTILE)
    text = terminal.render(hostile, colour=colour, verbose=verbose)
    own = {"\x1b"} if colour else set()
    assert set(text) & STEERING == own
    assert r"\x1b[2J" in text
    assert "\x1b[2J" not in text
    assert text.count("\x1b[") == text.count("\x1b")


@pytest.mark.parametrize("form", ["text", "md", "csv", "notes", "github", "sarif", "json", "html"])
@pytest.mark.parametrize("options", [(), ("--color", "always", "-v"), ("-q",)])
def test_no_form_steers_it(form: str, options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(encode(with_names(report(), HOSTILE)))
    assert main(["report", str(file), "--format", form, *options]) == 0
    told = capsys.readouterr()
    coloured = form == "text" and options and options[0] == "--color"
    assert set(told.out + told.err) & STEERING == ({"\x1b"} if coloured else set())
    assert "\x1b[2J" not in told.out
    if form == "json":  # and nothing of the data is lost
        assert json.loads(told.out)["hotspots"][0]["symbol"].endswith(HOSTILE)


def test_errors_and_usage_neither(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", f"/nowhere/{HOSTILE.replace(chr(0), '')}"]) != 0
    with pytest.raises(SystemExit):
        main(["report", "x", "--format", HOSTILE])
    told = capsys.readouterr()
    assert not set(told.err) & STEERING
    assert r"\x1b[2J" in told.err


def test_a_guarded_stream_is_otherwise_the_stream() -> None:
    inner = io.StringIO()
    stream = guarded(inner)
    assert guarded(stream) is stream
    stream.writelines(["\x1bone\n", "two"])
    assert inner.getvalue() == "\\x1bone\ntwo"
    styled(stream).write("\x1b[1m")
    assert inner.getvalue().endswith("\x1b[1m")
    assert styled(inner) is inner
    assert not stream.isatty()
