"""What is written of a long run where stderr is no terminal."""

from __future__ import annotations

import time

import pytest

from layout_advise.progress import SIGN_OF_LIFE_S, Progress


@pytest.mark.parametrize("quiet", [False, True])
def test_a_log_does_not_stand_still(
    quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with Progress(quiet=quiet) as progress:
        progress.step("measuring")
        now += SIGN_OF_LIFE_S / 2
        progress.count("measuring", 1, 9)
        assert capsys.readouterr().err == ""
        now += SIGN_OF_LIFE_S / 2
        progress.count("measuring", 2, 9)
        progress.count("measuring", 3, 9)
        assert capsys.readouterr().err == ("" if quiet else f"measuring 2/9 ({SIGN_OF_LIFE_S:.0f} s)\n")
        now += SIGN_OF_LIFE_S - 1
        progress.note("hotspot: step")
        now += 2
        progress.step("comparing")
        assert capsys.readouterr().err == ("" if quiet else "hotspot: step\n")


def test_what_holds_for_all_regions_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        for _ in range(3):
            progress.note("another thread lives", once=True)
        progress.note("region")
        progress.note("region")
    assert capsys.readouterr().err == "another thread lives\nregion\nregion\n"
