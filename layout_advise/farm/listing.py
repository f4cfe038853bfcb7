"""The list of programs: a TOML file, read into frozen values, and the runs that it asks for."""

from __future__ import annotations

import hashlib
import re
import shlex
import string
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from layout_advise.errors import UsageError
from layout_advise.farm.policy import FARM

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
VARIABLES = ("NAME", "VERSION", "LIST", "SOURCE", "BUILD", "INPUT", "VARIANT", "FLAGS", "CASE", "JOBS", "PYTHON")
"""Known to the steps as environment variables, and in ``run``, ``stdin`` and ``options``."""


class ProgramEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[[program]]`` as written. ``fetch``, ``build`` and ``input`` are shell scripts, ``run`` the command to trace.
    ``flags`` and ``inputs`` name variants; each pair of them is a run. ``files`` are files beside the list that the steps
    use: when one changes, so does what was made of it. Limits in seconds."""

    name: str
    run: str
    version: str = ""
    language: str = ""
    kind: str = ""
    fetch: str = ""
    build: str = ""
    input: str = ""
    stdin: str = ""
    flags: dict[str, str] = {}
    inputs: dict[str, str] = {}
    environment: dict[str, str] = {}
    files: tuple[str, ...] = ()
    options: str = ""
    limit: float = FARM.run_seconds
    build_limit: float = FARM.step_seconds
    note: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """One run: a program with one set of flags and one input. ``folder`` is that of the list."""

    entry: ProgramEntry
    folder: Path
    flags: str
    input: str

    @property
    def id(self) -> str:
        """``bzip2.text.O2``: a name for files, different for each run of a list."""
        return ".".join(part for part in (self.entry.name, self.input, self.flags) if part)

    @property
    def build_name(self) -> str:
        """The folder of the build."""
        return f"build-{self.flags}" if self.flags else "build"

    def step_digests(self) -> dict[str, str]:
        """For each step a digest of all that its result depends on, as far as the list says it."""
        entry = self.entry
        files = [(name, hashlib.sha256((self.folder / name).read_bytes()).hexdigest()) for name in entry.files]
        fetch = _digest(entry.fetch, entry.version, entry.name)
        build = _digest(fetch, entry.build, entry.flags.get(self.flags, ""), sorted(entry.environment.items()), files)
        return {
            "fetch": fetch,
            "build": build,
            # the input does not depend on the flags: all builds of a program get the same one
            "input": _digest(fetch, entry.input, sorted(entry.environment.items()), files),
        }

    def digest(self, options: Sequence[str], version: str) -> str:
        """Of everything that the run's result depends on: with another one, a row that is there is of another run."""
        entry, steps = self.entry, self.step_digests()
        return _digest(steps, entry.run, entry.stdin, entry.inputs.get(self.input, ""), entry.options, options, version)

    def words(self, text: str, variables: Mapping[str, str]) -> tuple[str, ...]:
        """``text`` as the shell would split it, with ``variables`` put in; ``$CASE`` may stand for several words."""
        found: list[str] = []
        for word in shlex.split(text):
            if word in ("$CASE", "${CASE}"):
                found += [string.Template(part).substitute(variables) for part in shlex.split(variables["CASE"])]
            else:
                found.append(string.Template(word).substitute(variables))
        return tuple(found)


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def read_list(path: Path) -> tuple[ProgramEntry, ...]:
    """The programs of a list, ``[defaults]`` filled in. Raises UsageError, which names the program, where one is wrong."""
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}", error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no list of programs", f"not TOML: {error}") from error
    unknown = sorted(data.keys() - {"defaults", "program"})
    if unknown or not data.get("program"):
        why = f"unknown: {', '.join(unknown)}" if unknown else "there is no [[program]] in it"
        raise UsageError(f"{path} is no list of programs", why, "see docs/farm.md")
    defaults, programs = data.get("defaults", {}), data["program"]
    if not isinstance(defaults, dict) or not isinstance(programs, list):
        raise UsageError(f"{path} is no list of programs", "write [defaults] and [[program]]", "see docs/farm.md")
    entries = tuple(_entry(path, defaults, row, number) for number, row in enumerate(programs, 1))
    names = [entry.name for entry in entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{path}: {twice[0]} is there twice", "names are folders")
    return entries


def _entry(path: Path, defaults: Mapping[str, object], row: object, number: int) -> ProgramEntry:
    name = row.get("name", f"program {number}") if isinstance(row, dict) else f"program {number}"
    try:
        if not isinstance(row, dict):
            raise msgspec.ValidationError("not a table")
        entry = msgspec.convert({**defaults, **row}, ProgramEntry)
        _check(entry, path.parent)
    except (msgspec.ValidationError, ValueError, KeyError, OSError) as error:
        why = f"unknown variable ${error.args[0]}" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"{path}: {name}", why, "see docs/farm.md") from error
    return entry


def _check(entry: ProgramEntry, folder: Path) -> None:
    for name in (entry.name, *entry.flags, *entry.inputs):
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a folder")
    if not entry.run.strip():
        raise ValueError("`run` is empty")
    if entry.limit <= 0 or entry.build_limit <= 0:
        raise ValueError("limits must be positive")
    for name in entry.files:
        if not (folder / name).is_file():
            raise ValueError(f"there is no file {name} beside the list")
    known = {**dict.fromkeys(VARIABLES, ""), **entry.environment}
    job = Job(entry, folder, "", "")
    for text in (entry.run, entry.stdin, entry.options, *(value for value in entry.inputs.values())):
        job.words(text, known)


def jobs_of(entries: Sequence[ProgramEntry], folder: Path) -> tuple[Job, ...]:
    """All runs, in the order of the list."""
    return tuple(
        Job(entry, folder, flags, case)
        for entry in entries
        for case in (entry.inputs or ("",))
        for flags in (entry.flags or ("",))
    )


def selected(entries: Sequence[ProgramEntry], only: Sequence[str], skip: Sequence[str]) -> tuple[ProgramEntry, ...]:
    """The programs named by ``only`` (empty: all) and not by ``skip``. Raises UsageError for a name that is none."""
    names = {entry.name for entry in entries}
    for name in (*only, *skip):
        if name not in names:
            raise UsageError(f"no program {name} in the list", "", f"it has {', '.join(sorted(names))}")
    return tuple(entry for entry in entries if (not only or entry.name in only) and entry.name not in skip)
