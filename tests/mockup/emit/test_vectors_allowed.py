"""Which layouts the compiler may put operations side by side in that the original has single."""

from __future__ import annotations

import pytest

from layout_advise.build.compile_flags import flags_of
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.emit import Emitted
from layout_advise.mockup.emit.packs.fmaddsub import brings_together, elements_whole
from layout_advise.mockup.run.compilers import CLANG, GCC
from layout_advise.mockup.timing.variants import IDENTITY
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.recipes import Recipe
from tests.support.mockups.case import f64_fields
from tests.support.mockups.native import candidate, relayout

FIELDS = f64_fields(("x", 0), ("y", 8), ("m", 24))


@pytest.mark.parametrize(
    ("kind", "fields", "whole", "together"),
    [
        ("compact", FIELDS[:2], True, False),
        ("compact", FIELDS, False, True),  # y and m
        ("split", FIELDS, False, True),  # x and m
        ("soa", FIELDS, False, False),
        ("blocks", FIELDS, False, True),
    ],
)
def test_what_comes_to_lie_side_by_side(kind: str, fields: tuple[Field, ...], whole: bool, together: bool) -> None:
    structure = Structure("s0", "p", 0x1000, 3200, (Dim(100, 32),), fields, (), 0x1000)
    chosen = candidate(relayout(structure, kind))
    assert (elements_whole(chosen), brings_together(chosen)) == (whole, together)
    assert elements_whole(None)
    assert not brings_together(None)


@pytest.mark.parametrize(("packs", "unpacked", "alone"), [(True, False, True), (False, True, True), (False, False, False)])
@pytest.mark.parametrize(("compiler", "flag"), [("gcc", GCC.only_these), ("clang-14", CLANG.only_these)])
def test_nothing_else_is_put_side_by_side(
    compiler: str, flag: tuple[str, ...], packs: bool, unpacked: bool, alone: bool
) -> None:
    flags = flags_of(Recipe(IDENTITY), Compiled(compiler, ("-O2",)), Emitted("", packs, unpacked, 0, False))
    assert (flag[0] in flags) == alone
