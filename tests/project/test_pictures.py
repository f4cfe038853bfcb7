"""The pictures of the report in docs/: of the sizes that pages say, and they can be taken anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.paths import ROOT
from tests.support.shipping.take_pictures import DESKTOP, FIRST, PICTURES, SCREENS, take


def colours(file: Path) -> list[tuple[int, int, int]]:
    """Red, green and blue of all colours of a picture, the most frequent first."""
    with Image.open(file) as picture:
        pixels = np.asarray(picture.convert("RGB")).reshape(-1, 3)
    found, counts = np.unique(pixels, axis=0, return_counts=True)
    return [(int(r), int(g), int(b)) for r, g, b in found[np.argsort(-counts)]]


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_the_committed_ones_are_there(name: str) -> None:
    with Image.open(SCREENS / name) as picture:
        assert picture.size == PICTURES[name][0]


def test_that_of_the_front_page_is_the_desktop_s() -> None:
    with Image.open(FIRST) as picture:
        assert picture.size == DESKTOP
    assert f"({FIRST.relative_to(ROOT)})" in (ROOT / "README.md").read_text()
    assert FIRST.read_bytes() == (SCREENS / "desktop.png").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_they_can_be_taken(tmp_path: Path) -> None:
    take(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(PICTURES)
    for name in PICTURES:
        found = colours(tmp_path / name)
        assert len(found) > 20  # text, a diff, marks: no blank page
        paper = found[0]
        assert (max(paper) < 64) == (name == "dark.png")
        assert any(green > red + 10 for red, green, _ in found)  # added lines are green
