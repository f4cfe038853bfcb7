"""``doctor --lift`` says what it knows as it goes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.commands.lifting import doctor_lift, lift_survey
from layout_advise.mockup.run.survey import SurveyOutcome

FUNCTION = "double f%d(double *p, int n) { double s = %d; for (int i = 0; i < n; i++) s += p[i]; return s; }\n"
CODE = "".join(FUNCTION % (k, k) for k in range(6))


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=CODE.encode(), check=True)
    return path


def test_rows_come_before_the_end(
    library: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []
    real = lift_survey.survey

    def interrupted(*given: object, told: object, **named: object) -> tuple[SurveyOutcome, ...]:
        def after(outcome: SurveyOutcome) -> None:
            assert callable(told)
            told(outcome)
            seen.append(capsys.readouterr().out)
            if len(seen) == 2:
                raise KeyboardInterrupt

        return real(*given, told=after, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(doctor_lift, "survey", interrupted)
    assert main(["doctor", "--lift", str(library), "-v"]) == 130
    assert len(seen) == 2
    assert all(text.count("\n") == 1 and "lifted" in text for text in seen)


def test_a_line_says_how_far_it_is(
    library: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor_lift, "_ROW", 4)
    assert main(["doctor", "--lift", str(library)]) == 0
    out, err = capsys.readouterr()
    assert "4 of " in err
    assert "functions can be lifted" in out
