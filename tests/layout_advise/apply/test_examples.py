"""The examples in other layouts print the same checksums, by both compilers, without warnings and clean under sanitizers."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from layout_advise.apply.rewrite.fields import fields_of
from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.rewrite.program import definition
from layout_advise.apply.rewrite.rewrite import rewrite
from layout_advise.apply.rewrite.target import target
from tests.support.compilers import needs_clang
from tests.support.paths import ROOT

FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-fno-math-errno")
CASES = [
    ("particles", "particle", "vx/m/P"),
    ("drift", "particle", ""),
    ("entities", "entity", "position/velocity/flags"),
    ("graph", "node", "rank,share/next"),
    ("kmeans", "point", ""),
    ("list", "order", "next,price,quantity"),
    ("nbody", "body", "x,y,z,m"),
    ("options", "contract", ""),
    ("pixels", "pixel", ""),
    ("scan", "order", "date,quantity/price,discount"),
    ("sph", "particle", "x,m/rho"),
]


def changed(example: str, record: str, groups: str, folder: Path) -> Path:
    """The rewritten example's source in a folder like that of the examples."""
    source = ROOT / "examples" / example / f"{example}.c"
    unit = parse(source, ("-std=c11",), source.parent)
    found = definition([unit], record)
    parts = [group.split(",") for group in groups.split("/")] if groups else [[f.name] for f in fields_of(found)]
    done = rewrite([unit], found, target(found, parts, "\n".join(unit.texts.values())))
    assert not done.refusals
    for path, text in {**unit.texts, **done.texts}.items():
        new = folder / path.relative_to(ROOT / "examples")
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(text.encode("latin-1"))
    return folder / example / f"{example}.c"


def output(source: Path, compiler: str, flags: Sequence[str], folder: Path) -> str:
    program = folder / "program"
    subprocess.run([compiler, *FLAGS, *flags, "-o", program, source, "-lm"], check=True)
    return subprocess.run([program, "2000", "5"], capture_output=True, text=True, check=True, timeout=60).stdout


def test_an_example_prints_the_same(tmp_path: Path) -> None:
    new = changed("list", "order", "next,price,quantity", tmp_path)
    old = output(ROOT / "examples" / "list" / "list.c", "gcc", ["-O2"], tmp_path)
    assert output(new, "gcc", ["-O2"], tmp_path) == old


@pytest.mark.slow
@pytest.mark.parametrize(("example", "record", "groups"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
def test_examples_print_the_same(
    compiler: str, example: str, record: str, groups: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")  # the examples do not free everything
    new = changed(example, record, groups, tmp_path)
    old = ROOT / "examples" / example / f"{example}.c"
    sanitized = [["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]]  # clang's runtime is often missing
    for flags in (["-O2"], ["-O3", "-march=haswell"], *(sanitized if compiler == "gcc" else ())):
        assert output(new, compiler, flags, tmp_path) == output(old, compiler, flags, tmp_path)
