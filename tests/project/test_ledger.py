"""Campaigns that are done in pieces: what was done is not done again, and counts are those of a commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.campaigns import ledger
from tests.support.campaigns.ledger import Ledger, commit_of, merged
from tests.support.nightly import __main__ as nightly
from tests.support.nightly.rounds import Tally


def test_ranges_are_merged() -> None:
    assert merged([(4, 5), (0, 0), (1, 1), (7, 9), (8, 8)]) == [(0, 1), (4, 5), (7, 9)]
    assert merged([]) == []


def test_what_was_done_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "done.json"
    kept = Ledger(path)
    for commit, turn in (("a", 0), ("a", 1), ("b", 2), ("b", 4)):
        entry = kept.entry("forms", "1", commit)
        entry.inputs += 10
        entry.by_kind["add"] += 3
        kept.done(entry, turn)
    again = Ledger(path)
    assert again.inputs("forms", "1") == 40
    assert again.next_turn("forms", "1") == 3
    assert again.next_turn("forms", "2") == again.next_turn("wide", "1") == 0
    assert [(e.commit, e.turns, e.by_kind) for e in again.of("forms", "1")] == [
        ("a", [(0, 1)], {"add": 6}),
        ("b", [(2, 2), (4, 4)], {"add": 6}),
    ]


def test_the_commit_is_that_of_what_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        named = ("-c", "user.name=n", "-c", "user.email=e")
        done = subprocess.run(["git", "-C", tmp_path, *named, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    monkeypatch.setattr(ledger, "ROOT", tmp_path)
    assert commit_of("tried") == "unknown"
    git("init", "-q")
    for name in ("tried", "other"):
        (tmp_path / name).write_text("1")
        git("add", name)
        git("commit", "-q", "-m", name)
    assert commit_of("tried") == git("rev-parse", "--short", "HEAD~1")
    (tmp_path / "other").write_text("2")
    assert not commit_of("tried").endswith("+")
    (tmp_path / "tried").write_text("2")
    assert commit_of("tried").endswith("+")


def test_pieces_of_a_night_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []

    def apart(part: str, seed: str, turn: int, runner: Path) -> Tally:
        seen.append((part, turn))
        return Tally(inputs=2000, states=8000, differing=["one"] if turn == 1 else [])

    monkeypatch.setattr(nightly, "apart", apart)
    wanted = {"forms": 5000, "wide": 2000, "functions": 0}
    end = float("inf")
    assert not nightly.pieces(Ledger(tmp_path / "done"), "1", {"forms": 2000, "wide": 0, "functions": 0}, end, tmp_path)
    assert nightly.pieces(Ledger(tmp_path / "done"), "1", wanted, end, tmp_path)
    assert not nightly.pieces(Ledger(tmp_path / "done"), "1", wanted, end, tmp_path)
    assert seen == [("forms", 0), ("forms", 1), ("wide", 0), ("forms", 2)]
    assert [line for entry in Ledger(tmp_path / "done").of("forms", "1") for line in entry.found] == ["forms.1: one"]
    assert not nightly.pieces(Ledger(tmp_path / "done"), "1", {"forms": 9000, "wide": 0, "functions": 0}, 0.0, tmp_path)
    assert len(seen) == 4
