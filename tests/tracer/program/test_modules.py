"""Finding what is mapped where, also in a process with a thousand libraries."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.sampling.hotspots import rank
from layout_advise.tracer.trace.trace import Mapping

PAGE = 4096


def mapping(start: int, end: int, path: str = "", offset: int = 0) -> Mapping:
    return Mapping(start, end, "r-xp", offset, path)


@pytest.mark.parametrize("overlapping", [False, True])
def test_the_mapping_at_an_address(overlapping: bool) -> None:
    r = random.Random(overlapping)
    starts = sorted(r.sample(range(1000), 60))
    maps = [
        mapping(a, (b + 5 if overlapping else r.randint(a + 1, b))) for a, b in zip(starts, [*starts[1:], 1010], strict=True)
    ]
    modules = Modules(maps)
    for address in range(1020):
        holding = [m for m in maps if m.start <= address < m.end]
        found = modules.mapping_at(address)
        assert found in holding if holding else found is None


@pytest.fixture
def libraries(tmp_path: Path) -> list[Path]:
    (tmp_path / "one.c").write_text("static int zeroes[4000]; int one(void) { return zeroes[3]; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "0.so", tmp_path / "one.c"], check=True)
    others = [tmp_path / f"{k}.so" for k in range(1, 40)]
    return [tmp_path / "0.so", *(Path(shutil.copy(tmp_path / "0.so", other)) for other in others)]


def mapped(libraries: list[Path]) -> list[Mapping]:
    """Each library from a place of its own on: two parts of the file, and a part of .bss behind them."""
    found = []
    for number, library in enumerate(libraries):
        base = 0x7F0000000000 + number * 0x100000
        found += [mapping(base, base + PAGE, str(library)), mapping(base + PAGE, base + 2 * PAGE, str(library), PAGE)]
        found += [mapping(base + 2 * PAGE, base + 9 * PAGE)]
    return found


def test_as_many_looks_as_libraries(libraries: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    real = os.path.realpath

    def counted(path: str) -> str:
        looks.append(path)
        return real(path)

    monkeypatch.setattr("layout_advise.tracer.program.binary.os.path.realpath", counted)
    modules = Modules(mapped(libraries))
    found = [modules.module(str(library)) for library in libraries]
    assert [m.load_base if m else None for m in found] == [0x7F0000000000 + k * 0x100000 for k in range(len(libraries))]
    assert len(looks) <= 3 * len(libraries)


def test_what_lies_behind_a_file_is_its_bss(libraries: list[Path]) -> None:
    modules = Modules(mapped(libraries))
    module = modules.module(str(libraries[3]))
    assert module is not None
    (zeroes,) = (v for v in module.binary.variables if v.name == "zeroes")
    place = module.load_base + zeroes.address
    assert modules.mapping_at(place) is not None
    found = modules.module_at(place)
    assert found is not None
    assert found.binary.path == libraries[3]
    assert modules.module_at(module.load_base + 9 * PAGE) is None


def test_only_libraries_with_samples_are_opened(libraries: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    modules = Modules(mapped(libraries))
    opened = []
    real = Modules._open

    def counted(self: Modules, path: str) -> object:
        opened.append(path)
        return real(self, path)

    monkeypatch.setattr(Modules, "_open", counted)
    found = modules.module(str(libraries[5]))
    assert found is not None
    at = found.load_base + found.binary.find("one").start
    opened.clear()
    (hot,) = rank([(at,)] * 10, Modules(mapped(libraries)))
    assert (hot.symbol, hot.samples) == ("one", 10)
    assert opened == [str(libraries[5])]
