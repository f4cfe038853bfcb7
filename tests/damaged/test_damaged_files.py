"""Whatever a file holds, its reader answers or refuses in one line: no other error, no hang, no flood of memory.

``make fuzz`` feeds a million inputs, the slow test some thousands, the quick ones what hypothesis draws in a few seconds.
"""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layout_advise.cli import main
from layout_advise.errors import LayoutAdviseError
from tests.support.fuzzing import trees
from tests.support.fuzzing.campaign import campaign, told
from tests.support.fuzzing.readers import READERS
from tests.support.fuzzing.samples import Samples, samples


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return samples(tmp_path_factory.mktemp("samples"))


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused_in_one_line(name: str, known: Samples) -> None:
    @settings(max_examples=12, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.randoms(use_true_random=False))
    def read(random: Random) -> None:
        try:
            READERS[name][0](random, known)
        except LayoutAdviseError:
            return

    read()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_thousands_of_damaged_files() -> None:
    said: list[str] = []
    faults = told(campaign(60_000, "test-all", seconds=400), said.append)
    assert faults == 0, "\n".join(said)


def test_a_campaign_tells_a_hang_and_a_flood_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def floods(random: Random, known: Samples) -> None:
        bytearray(3 << 30)

    def spins(random: Random, known: Samples) -> None:
        while True:
            pass

    monkeypatch.setattr("tests.support.fuzzing.campaign.SECONDS", 0.2)
    monkeypatch.setattr("tests.support.fuzzing.campaign.READERS", {"floods": (floods, 1), "spins": (spins, 1)})
    said: list[str] = []
    assert told(campaign(2, "1"), said.append) == 2
    assert "MemoryError" in "".join(said)
    assert "more than 0.2 s" in "".join(said)


@pytest.mark.parametrize(("key", "value"), [("field", 99), ("buffer", 99), ("dim", 99)])
def test_a_layout_of_fields_that_there_are_not_is_refused(key: str, value: int, known: Samples, tmp_path: Path) -> None:
    shutil.copytree(known.run, tmp_path / "run")
    changed = copy.deepcopy(known.candidates)
    for node, name in trees.places(changed):
        if name == key and isinstance(node[name], int):
            node[name] = value
    (tmp_path / "run" / "regions" / known.region.name / "candidates.json").write_text(json.dumps(changed))
    assert main(["emit", str(tmp_path / "run"), "--as", "c"]) == 1


def test_a_layout_without_an_index_is_refused(known: Samples, tmp_path: Path) -> None:
    shutil.copytree(known.run, tmp_path / "run")
    changed = copy.deepcopy(known.candidates)
    for node, name in trees.places(changed):
        if name == "axes":
            node[name] = []
    (tmp_path / "run" / "regions" / known.region.name / "candidates.json").write_text(json.dumps(changed))
    assert main(["emit", str(tmp_path / "run"), "--as", "rust-soa_derive"]) == 1
