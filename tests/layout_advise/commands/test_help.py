"""``help``: topics, the man page and completion, all of the parser itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from layout_advise import cli
from layout_advise.commands.helping import topics
from layout_advise.commands.helping.catalogue import commands_of
from layout_advise.commands.helping.completion import script
from layout_advise.reasons import Reason
from tests.support.paths import ROOT


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["help", *words]) == 0
    return capsys.readouterr().out


def test_every_topic_is_listed_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = printed(capsys)
    for name in topics.TOPICS:
        assert f"\n  {name} " in listed
        text = printed(capsys, name)
        assert text
        assert max(map(len, text.splitlines())) <= 80


def test_a_command_is_explained_as_by_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["help", "compare"])
    assert stop.value.code == 0
    assert "Usage: layout-advise compare" in capsys.readouterr().out


def test_an_unknown_topic_names_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["help", "nothing"]) == 2
    assert "reasons" in capsys.readouterr().err


def test_every_reason_is_explained() -> None:
    assert {reason.value for reason in Reason if reason.value} == {*topics.OTHER_ANSWERS, *topics.NO_ANSWER}


def test_every_variable_that_is_read_is_told() -> None:
    """And none that is not. The agent's and the farm's are set by the tool itself."""
    own = {"LAYOUT_ADVISE_AGENT", "LAYOUT_ADVISE_RESUMED", "LAYOUT_ADVISE_FARM", "LAYOUT_ADVISE_ROOT"}
    asked = ["git", "grep", "-hoE", r"""(environ\.get\(|environ\[|from_environment\()"[A-Z_]+""", "--", "*.py", ":!tests"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    read = {line.rsplit('"', 1)[1] for line in found} | {"LAYOUT_ADVISE_TIMEOUT"}
    assert {name for name in read if name.startswith("LAYOUT_ADVISE_")} - own <= set(topics.VARIABLES)
    assert {name for name in topics.VARIABLES if name.startswith("LAYOUT_ADVISE_")} <= read


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff formats man pages")
def test_the_man_page_has_every_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, "--man")
    command = ["groff", "-k", "-man", "-Tutf8", "-ww", "-rLL=1000n", "-P-cbou"]
    done = subprocess.run(command, input=page, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    shown = " ".join(done.stdout.replace("‐", "-").replace("−", "-").split())
    for entry in commands_of(cli.parser()):
        assert entry.usage in shown
        assert all(option.spelling in shown for option in entry.options)


def test_completion_knows_commands_and_options() -> None:
    text = script(cli.parser(), "bash")
    asked = f"""{text}
COMP_WORDS=(layout-advise rep); COMP_CWORD=1; COMP_LINE="layout-advise rep"; COMP_POINT=17
_shtab_layout_advise layout-advise rep layout-advise; echo "${{COMPREPLY[@]}}"
COMP_WORDS=(layout-advise report --fig); COMP_CWORD=2
_shtab_layout_advise layout-advise --fig report; echo "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert [line.split() for line in done.stdout.splitlines()] == [["report"], ["--figure"]]


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells(shell: str, tmp_path: Path) -> None:
    text = script(cli.parser(), shell)
    assert all(entry.name in text for entry in commands_of(cli.parser()))
    if shutil.which(shell) is not None:
        (tmp_path / "script").write_text(text)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)
