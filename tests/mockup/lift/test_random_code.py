"""Random forms of instructions and random functions, lifted, against the processor: seconds of ``make nightly``."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.support.compilers import HAS_AVX512
from tests.support.lifting import instruction_forms, wide_forms
from tests.support.nightly import random_forms
from tests.support.nightly.rounds import builds, form_round, function_round, wide_round


def test_random_forms_do_what_the_processor_does(tmp_path: Path) -> None:
    found = form_round("test", 300, tmp_path)
    assert found.states == 1200
    assert len(found.by_kind) > 100
    assert found.differing == []
    assert found.refused == {}


@pytest.mark.skipif(not HAS_AVX512, reason="this processor has no AVX-512 (avx512f, bw, dq, vl, cd)")
def test_random_forms_of_avx512_do_what_the_processor_does(tmp_path: Path) -> None:
    found = wide_round("test", 200, tmp_path)
    assert found.states == 800
    assert len(found.by_kind) > 60
    assert found.differing == []
    assert found.refused == {}


def test_forms_of_avx512_are_varied() -> None:
    known = set(wide_forms.every())
    made = random_forms.wide(random.Random(4), 1000)
    assert len(set(made) - known) > 800
    assert any("{k6}" in form for form in made)
    assert not any("{k0}" in form for form in made)


def test_forms_are_varied() -> None:
    known = set(instruction_forms.every())
    made = random_forms.forms(random.Random(4), 1000)
    assert len(set(made) - known) > 600


@pytest.mark.parametrize(("compiler", "flags"), [("gcc", "-O2"), ("clang", "-O3 -march=haswell")])
def test_random_functions_do_what_they_did(compiler: str, flags: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    found = function_round("test", 4, compiler, flags, tmp_path)
    assert found.differing == []
    assert found.states > 0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("compiler", "flags"), builds())
def test_more_random_functions(compiler: str, flags: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    found = function_round("slow", 20, compiler, flags, tmp_path)
    assert found.differing == []
    assert found.states > 0
