"""Where the time for building is over, what was begun counts, and the rest says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from layout_advise.build import mockups
from layout_advise.build.mockups import Mockup, make_all
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_SIMD, Variant
from layout_advise.propose.recipes import Recipe
from layout_advise.propose.source import Source


def test_of_other_layouts_none_but_the_first_is_begun_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def make(recipe: Recipe, *rest: Any) -> Mockup:
        now[0] += 10.0
        return Mockup(recipe, "", tmp_path / str(recipe.variant), None, None)

    class Plain:
        rolled = None

        def of(self, recipe: Recipe, trace: object, structures: object) -> tuple[None, None]:
            return None, None

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(mockups, "_make", make)
    monkeypatch.setattr(mockups, "BUILD", type("One", (), {"jobs": 1}))
    source = cast(Source, type("Made", (), {"code": Plain(), "trace": None, "structures": (), "told": staticmethod(str)}))
    c1, c2 = (Candidate(name, (), (), ()) for name in ("c1", "c2"))
    wanted = [Recipe(IDENTITY), Recipe(Variant("c1"), c1), Recipe(Variant("c2"), c2), Recipe(IDENTITY_SIMD)]
    wanted += [Recipe(Variant("c1", "simd"), c1), Recipe(Variant("c2", "simd"), c2)]
    made = make_all(wanted, source, cast(Any, None), tmp_path, until=15.0)
    assert [str(v) for v, one in made.items() if one.path is None] == ["c2", "c2-simd"]
    assert made[Variant("c2")].reason == "not built: the time for compiling was over"
    assert all(one.path is not None for one in make_all(wanted, source, cast(Any, None), tmp_path).values())
