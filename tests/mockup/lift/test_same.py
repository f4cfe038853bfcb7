"""Lifting the same code gives the same C, whatever lies where in the lifter's own memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.lifting.bash_mockups import sources
from tests.support.paths import ROOT

# The same in another process, whose hashes of strings differ.
ELSEWHERE = "import sys; from tests.support.lifting.bash_mockups import sources; sys.stdout.write('\\f'.join(sources()))"


@pytest.mark.slow
def test_lifting_again_gives_the_same() -> None:
    """Sets of nodes are iterated in the order of their addresses: phis of functions of bash changed places so."""
    first = sources()
    assert sum(text.startswith("/* Mock-up") for text in first) > 20
    junk = []
    for turn in range(3):
        junk.append([object() for _ in range(12345 * (turn + 1))])
        assert sources() == first
    del junk


def test_another_process_lifts_the_same() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    root = ROOT
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\f") == sources()
