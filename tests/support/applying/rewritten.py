"""C and C++ rewritten for another layout, compiled and run, for tests of ``apply``."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from layout_advise.apply import macros
from layout_advise.apply.rewrite.fields import fields_of
from layout_advise.apply.rewrite.program import definition
from layout_advise.apply.rewrite.rewrite import Rewritten, rewrite
from layout_advise.apply.rewrite.syntax import TranslationUnit
from layout_advise.apply.rewrite.target import target
from layout_advise.apply.sources import SourceFile

WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-O1")
SANITIZED = (*WARNINGS, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
CXX_WARNINGS = ("-std=c++11", "-Wall", "-Wextra", "-Werror", "-O1")
CXX_SANITIZED = (*CXX_WARNINGS, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COMPILERS = {".c": {"gcc": "gcc", "clang": "clang"}, ".cpp": {"gcc": "g++", "clang": "clang++"}}
Groups = Sequence[Sequence[str]]


def rewritten(
    files: dict[str, str],
    record: str,
    groups: Groups | None,
    folder: Path,
    *,
    guard: bool = False,
    standard: str = "",
    blocks: Sequence[int] = (),
    ordered: bool = False,
    padded: int = 0,
    pooled: bool = False,
    apart: Sequence[str] = (),
) -> Rewritten:
    """Writes ``files`` to ``folder`` and rewrites all of its ``.c`` or ``.cpp`` files; ``groups`` None: an array for
    each member; ``blocks``: the elements in a block of each group; ``ordered``: which keeps its order; ``padded``: bytes of
    an element; ``pooled``: they are allocated one by one."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    standard = standard or "-std=c11" if any(name.endswith(".c") for name in files) else standard or "-std=c++11"

    def make(units: Sequence[TranslationUnit]) -> Rewritten:
        found = definition(units, record)
        parts = groups if groups is not None else [[field.name] for field in fields_of(found)]
        layout = target(
            found, parts, "\n".join(files.values()), blocks, ordered=ordered, padded=padded, pooled=pooled, apart=apart
        )
        return rewrite(units, found, layout, guard=guard)

    sources = [SourceFile(folder / name, (standard,), folder) for name in files if name.endswith((".c", ".cpp"))]
    return macros.rewritten(sources, folder, make)


def changed(
    files: dict[str, str],
    record: str,
    groups: Groups | None,
    folder: Path,
    *,
    guard: bool = False,
    blocks: Sequence[int] = (),
    ordered: bool = False,
    padded: int = 0,
    pooled: bool = False,
    apart: Sequence[str] = (),
) -> Path:
    """The folder ``new`` in ``folder`` with the rewritten files, nothing of which may be refused."""
    options: dict[str, Any] = {
        "guard": guard,
        "blocks": blocks,
        "ordered": ordered,
        "padded": padded,
        "pooled": pooled,
        "apart": apart,
    }
    done = rewritten(files, record, groups, folder / "old", **options)
    assert not done.refusals, done.refusals
    (folder / "new").mkdir()
    for name, text in files.items():
        new = done.texts.get((folder / "old" / name).resolve())
        (folder / "new" / name).write_text(text if new is None else new)
    return folder / "new"


def output(folder: Path, flags: Sequence[str] | None = None, compiler: str = "gcc") -> str:
    """Output of the program that all ``.c`` or ``.cpp`` files of a folder make. It is run in the folder."""
    sources = sorted(path for path in folder.iterdir() if path.suffix in COMPILERS)
    kind = sources[0].suffix
    given = flags if flags is not None else {".c": WARNINGS, ".cpp": CXX_WARNINGS}[kind]
    subprocess.run([COMPILERS[kind][compiler], *given, "-o", folder / "program", *sources, "-lm"], check=True)
    return subprocess.run([folder / "program"], cwd=folder, capture_output=True, text=True, check=True, timeout=60).stdout
