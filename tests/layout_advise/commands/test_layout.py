"""``layout-advise layout``: what it prints of a term and of its rewriting, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.terms.text import parse

AOS = "A_256 ⊗ S_{0,1;4}"
EVEN, ODD = "(S_{0;2} ⊗ A_256 ⊗ S_{0,1;4})", "(S_{1;2} ⊗ A_256 ⊗ S_{2,3;4})"


def shown(out: str, label: str) -> list[str]:
    return [line.split(None, 1)[1] for line in out.splitlines() if line.startswith(f"  {label} ")]


def test_layout_prints_sizes_offsets_and_a_drawing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", AOS]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == AOS
    assert shown(out, "domain") == ["1,024, 512 accessed (50 %)"]
    assert shown(out, "offsets") == ["0 1 4 5 8 9 12 13 16 17 20 21 …"]
    assert shown(out, "drawing") == ["AB.." * 16 + " …"]


def test_layout_rewrites_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", AOS, "--rule", "5@0:4", "--rule", "4@1", "--rule", "7@1"]) == 0
    out = capsys.readouterr().out
    steps = [line for line in out.splitlines() if line.startswith("rule ")]
    assert steps == [
        "rule 5 at factor 0: A_64 ⊗ A_4 ⊗ S_{0,1;4}",
        "rule 4 at factor 1: A_64 ⊗ S_{0,1;4} ⊗ A_4",
        "rule 7 at factor 1: A_64 ⊗ A_2 ⊗ A_4",
    ]
    drawings = shown(out, "drawing")
    assert drawings[2].startswith("AAAABBBB........AAAABBBB")
    assert drawings[3].startswith("AAAABBBBAAAABBBB")


@pytest.mark.parametrize(
    ("term", "rule", "result"),
    [
        ("S_{0:4,8:12;16}", "1@0:4", "S_{0,2;4} ⊗ A_4"),
        ("S_{1,5,9,13;16}", "2@0:4", "A_4 ⊗ S_{1;4}"),
        ("S_{1,9;16}", "3@0:4", "S_{0,2;4} ⊗ S_{1;4}"),
        ("A_6 ⊗ S_{0;3}", "4@0", "S_{0;3} ⊗ A_6"),
        ("A_12", "5@0:4", "A_3 ⊗ A_4"),
        ("S_{0,1;3} ⊗ S_{1;2}", "6@0", "S_{1,3;6}"),
        ("A_6 ⊗ S_{0,2;3}", "7@1", "A_6 ⊗ A_2"),
        ("A_6 ⊗ S_{0,2;3}", "8@1:4", "A_6 ⊗ S_{0,2;4}"),
        ("A_4 ⊗ (S_{0;3} ⊕ S_{2;3})", "4@0", "S_{0,2;3} ⊗ A_4"),
    ],
)
def test_every_rule(term: str, rule: str, result: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", term, "--rule", rule, "-q"]) == 0
    assert capsys.readouterr().out == f"{result}\n"


@pytest.mark.parametrize("notation", ["--ascii", None])
def test_what_layout_prints_it_reads(notation: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    term = f"{EVEN} ⊕ {ODD}"
    assert main(["layout", term, "-q", *([notation] if notation else [])]) == 0
    out = capsys.readouterr().out
    assert out.isascii() == (notation == "--ascii")
    assert parse(out) == parse(term)


def test_ascii_output_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", AOS, "--ascii", "--rule", "4@0"]) == 0
    assert capsys.readouterr().out.isascii()


def test_latex(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", AOS, "--latex", "-q"]) == 0
    assert capsys.readouterr().out == "A_{256} \\otimes S_{\\{0,1\\};4}\n"


def test_the_drawing_follows_the_members(tmp_path: Path) -> None:
    file = tmp_path / "steps.svg"
    assert main(["layout", "A_4 ⊗ S_{0,1;4}", "--rule", "4@0", "--rule", "7@0", "--svg", str(file)]) == 0
    svg = file.read_text()
    assert svg.startswith("<svg ")
    assert svg.count("</svg>") == 1
    assert svg.count(": member 0</title>") == svg.count(": member 1</title>") == 3 * 4
    assert svg.count(": unused</title>") == 8 + 8 + 0


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["A_256 * S_{0,1"], ["line 1, column 15", "A_256 * S_{0,1^"]),
        (["A_4 ⊗ X_3"], ["column 7", "A_4 ⊗ ^X_3"]),
        (["A_0"], ["sizes start at 1", "^A_0"]),
        (["A_4 ⊕ A_5"], ["different domains"]),
        ([AOS, "--rule", "7@0"], ["rule 7 does not apply at factor 0", "array"]),
        ([AOS, "--rule", "5@0:3"], ["3 does not divide 256", "258"]),
        ([AOS, "--rule", "4@9"], ["there are 2 factors"]),
        ([f"{EVEN} ⊕ {ODD}", "--rule", "7@0", "--rule", "7@1"], ["1024 accessed offsets would share 512 places"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_layout_errors_are_one_line(words: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", *words]) == AlgebraError.exit_code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert all(part in said.err for part in parts)


def test_huge_terms_cost_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "A_1000000000000 ⊗ S_{0,5;64}", "--rule", "4@0", "--rule", "7@0"]) == 0
    assert "2,000,000,000,000 accessed (100 %)" in capsys.readouterr().out


def test_layout_says_where_places_have_gone(capsys: pytest.CaptureFixture[str]) -> None:
    term = ["layout", "A_256 ⊗ S_{0,1;4}"]
    assert main([*term, "-q", "--rule", "4@0", "--rule", "7@0", "--map", "text"]) == 0
    assert capsys.readouterr().out == "x -> 256*(x % 4) + x // 4\n"
    assert main([*term, "--rule", "9@1:0", "--map", "c"]) == 0
    out = capsys.readouterr().out
    assert "rule 9 at factor 1: (S_{0;2} ⊗ A_256 ⊗ S_{0;4}) ⊕ (S_{1;2} ⊗ A_256 ⊗ S_{1;4})" in out
    assert "return x + 1024;" in out
    assert main([*term, "-q", "--rule", "8@1:5", "--map", "sympy"]) == 0
    assert capsys.readouterr().out == "Mod(x, 4) + 5*floor(x/4)\n"


@pytest.mark.parametrize("rule", ["9@0", "5@0:3,4", "9@0:", "10@0:1"])
def test_layout_refuses_rules_with_wrong_parameters(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["layout", "A_4", "--rule", rule])
    assert stopped.value.code == 2
    assert "rule" in capsys.readouterr().err
