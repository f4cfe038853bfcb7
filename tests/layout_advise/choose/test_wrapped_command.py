"""The program behind ``env`` and ``sh -c``."""

from __future__ import annotations

import subprocess

import pytest

from layout_advise.choose.wrapped_command import unwrapped
from layout_advise.errors import UsageError


@pytest.mark.parametrize(
    ("command", "program", "variables"),
    [
        (["./app", "env", "-c"], ("./app", "env", "-c"), {}),
        (["env", "X=1", "Y=a b", "./app", "Z=2"], ("./app", "Z=2"), {"X": "1", "Y": "a b"}),
        (["/usr/bin/env", "--", "./app"], ("./app",), {}),
        (["sh", "-c", "./app 'one word' -n 3"], ("./app", "one word", "-n", "3"), {}),
        (["bash", "-c", "exec env OMP_NUM_THREADS=1 ./app"], ("./app",), {"OMP_NUM_THREADS": "1"}),
        (["sh", "-c", "A=1 ./app --b=2"], ("./app", "--b=2"), {"A": "1"}),
        (["env", "A=1", "sh", "-c", "./app"], ("./app",), {"A": "1"}),
        (["sh", "script.sh"], ("sh", "script.sh"), {}),
        (["env"], ("env",), {}),
    ],
)
def test_the_program_is_found(command: list[str], program: tuple[str, ...], variables: dict[str, str]) -> None:
    found = unwrapped(command)
    assert (found.command, dict(found.variables)) == (program, variables)


@pytest.mark.parametrize(
    "text",
    ["./a; ./b", "./a | ./b", "./a > out", "./a $HOME", "cd x && ./a", "./a *.txt", "for i in 1; do ./a; done", "'", ""],
)
def test_scripts_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="cannot follow sh -c: its text is not one plain command"):
        unwrapped(["sh", "-c", text])


def test_options_of_env_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot follow env -i"):
        unwrapped(["env", "-i", "./app"])


@pytest.mark.parametrize("text", ["printf %s-%s one 'two three'", 'A=1 printf %s "a b"', "exec printf x"])
def test_what_is_followed_does_what_the_shell_does(text: str) -> None:
    found = unwrapped(["sh", "-c", text])
    ran = subprocess.run(found.command, capture_output=True, check=True, env={"PATH": "/usr/bin:/bin", **found.variables})
    assert ran.stdout == subprocess.run(["sh", "-c", text], capture_output=True, check=True).stdout
