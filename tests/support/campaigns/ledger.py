"""What long campaigns have done so far, in a file that later pieces add to: by part, seed and commit."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


Turns = tuple[int, int]
"""The first and the last of a range."""


@dataclass(slots=True)
class Entry:
    """What was done of a part with a seed at a commit: which turns, sums over them, and what was found."""

    part: str
    seed: str
    commit: str
    turns: list[Turns] = field(default_factory=list)
    inputs: int = 0
    states: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    by_kind: Counter[str] = field(default_factory=Counter)


class Ledger:
    """The entries of a file, which is written anew after each turn; without a file nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.entries: list[Entry] = []
        if path is not None and path.exists():
            rows = json.loads(path.read_text())
            self.entries = [_entry(row) for row in rows]

    def of(self, part: str, seed: str) -> list[Entry]:
        """The entries of a part and a seed, of all commits."""
        return [entry for entry in self.entries if (entry.part, entry.seed) == (part, seed)]

    def inputs(self, part: str, seed: str) -> int:
        """How many were done by now."""
        return sum(entry.inputs for entry in self.of(part, seed))

    def next_turn(self, part: str, seed: str) -> int:
        """The first turn that nobody has done."""
        done = merged([turns for entry in self.of(part, seed) for turns in entry.turns])
        return done[0][1] + 1 if done and done[0][0] == 0 else 0

    def entry(self, part: str, seed: str, commit: str) -> Entry:
        """That of a part, a seed and a commit, made where there is none."""
        for entry in self.of(part, seed):
            if entry.commit == commit:
                return entry
        self.entries.append(Entry(part, seed, commit))
        return self.entries[-1]

    def done(self, entry: Entry, first: int, count: int = 1) -> None:
        """So many turns more, whose counts ``entry`` has already."""
        entry.turns = merged([*entry.turns, (first, first + count - 1)])
        if self.path is None:
            return
        rows = [{one.name: getattr(entry, one.name) for one in fields(entry)} for entry in self.entries]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        lines = ",\n".join(json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows)
        new.write_text(f"[\n{lines}\n]\n")
        new.replace(self.path)


def _entry(row: dict[str, Any]) -> Entry:
    counted = {name: Counter(row[name]) for name in ("refused", "by_kind")}
    return Entry(**{**row, **counted, "turns": [(first, last) for first, last in row["turns"]]})


def merged(ranges: Iterable[Turns]) -> list[Turns]:
    """The same turns in as few ranges as there can be, in order."""
    found: list[Turns] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def commit_of(*paths: str) -> str:
    """The last commit that changed one of the paths; with ``+`` where they are changed since, ``unknown`` outside of git."""
    git = ("git", "-C", str(ROOT))
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    found = subprocess.run(
        [*git, "log", "-1", "--format=%h", "--", *paths], capture_output=True, text=True, check=False, env=environment
    )
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--", *paths], capture_output=True, text=True, check=False, env=environment
    )
    return (found.stdout.strip() or "unknown") + "+" * bool(changed.stdout.strip())
