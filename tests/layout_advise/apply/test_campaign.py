"""The campaign of random programs counts what it did, goes on behind it, and tells what differs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.applying import __main__ as campaign
from tests.support.applying.record_programs import RecordProgram


def run(monkeypatch: pytest.MonkeyPatch, results: Path, programs: int) -> int:
    monkeypatch.setattr(sys, "argv", ["applying", "--programs", str(programs), "--results", str(results)])
    monkeypatch.setattr(campaign, "ROUND", 4)
    return campaign.main()


def test_pieces_add_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tried: list[RecordProgram] = []
    monkeypatch.setattr(campaign, "same", lambda program, _build: tried.append(program))
    assert run(monkeypatch, tmp_path / "r.json", 6) == run(monkeypatch, tmp_path / "r.json", 9) == 0
    (entry,) = json.loads((tmp_path / "r.json").read_text())
    assert (entry["inputs"], entry["turns"], entry["found"]) == (9, [[0, 2]], [])
    assert len(tried) == 12  # the simplest one of each round is not counted
    assert len({(one.text, one.groups, one.blocks) for one in tried}) == 10


def test_what_differs_is_kept_with_its_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def differs(program: RecordProgram, build: str) -> None:
        raise AssertionError(f"{build} prints something else")

    monkeypatch.setattr(campaign, "same", differs)
    results = tmp_path / "r.json"
    assert run(monkeypatch, results, 1) == 1
    (entry,) = json.loads(results.read_text())
    (found,) = entry["found"]
    assert "prints something else" in found
    assert "struct item {" in found
