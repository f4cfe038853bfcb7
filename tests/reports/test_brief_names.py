"""Names of several hundred characters: short on the screen, whole when pointed at, with ``--all`` and in data."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.reports.exports.markdown import markdown
from layout_advise.reports.exports.notes import notes
from layout_advise.reports.exports.sarif import sarif
from layout_advise.reports.model.contract import PassedOver, Profile, Report
from layout_advise.reports.pages import html, terminal
from layout_advise.reports.words.brief_names import MOST, MOST_PLAIN, brief, long_names, readable
from layout_advise.reports.words.quantities import as_arrays
from tests.support.sample_report import report

MATRIX = "Eigen::Matrix<double, -1, -1, 0, -1, -1>"
MATRIX_BRIEF = "Eigen::Matrix<…>"
PRODUCT = f"Eigen::Product<{MATRIX}, Eigen::Transpose<{MATRIX} const>, 0> const"
LOOP = f"Eigen::internal::call_dense_assignment_loop<{MATRIX}, {PRODUCT}, Eigen::internal::assign_op<double, double> >"
PAIR = f"std::pair<{MATRIX}, std::vector<double, std::allocator<double> > >"


def named() -> Report:
    """The sample with a function, a type, a variable, and functions without an answer of long names."""
    shown = report()
    structure = msgspec.structs.replace(shown.hotspots[0].structures[0], type=f"struct {PAIR}")
    hotspot = msgspec.structs.replace(shown.hotspots[0], name=LOOP, symbol=f"_ZN5Eigen{'x' * 300}", structures=(structure,))
    return msgspec.structs.replace(
        shown,
        hotspots=(hotspot,),
        profile=(Profile(f"void {LOOP}({MATRIX}&)", 0.6, "app"),),
        passed_over=(PassedOver(f"{LOOP}::run", 0.1, "not-lifted", f"Undecided: `{LOOP}::run` is not lifted."),),
    )


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("std::vector<int>", "std::vector<int>"),
        (LOOP, "Eigen::internal::call_dense_assignment_loop<…>"),
        (f"{LOOP}({MATRIX}&, int)", "…::internal::call_dense_assignment_loop<…>(…)"),
        ("std::map<int, std::pair<int, double>, std::less<int>, std::allocator<int> >::f", "std::map<…>::f"),
        (
            "std::vector<std::pair<int, double>, std::allocator<int> >::at",
            "std::vector<…>::at",
        ),
        (f"operator<< <{MATRIX}, {MATRIX}>", "operator<< <Eigen::Matrix<…>, Eigen::Matrix<…>>"),
        (f"(anonymous namespace)::{'a' * 30}::work<{MATRIX}>", f"…::{'a' * 30}::work<…>"),
        ("a" * 70, "a" * 47 + "…"),
        ("FLAC__lpc_compute_residual_from_qlp_coefficients_intrin_avx2",) * 2,
        (f"f<{'a' * 60}", f"f<{'a' * 45}…"),
        (f"<alloc::vec::Vec<T,A> as core::iter::{'x' * 40}>::extend", "<…>::extend"),
    ],
)
def test_what_is_left_of_a_name(name: str, short: str) -> None:
    assert brief(name) == short


@given(st.text("ab<>(){},: *…", max_size=200), st.integers(10, 60))
def test_it_fits_whatever_it_is(name: str, most: int) -> None:
    short = brief(name, most)
    assert len(short) <= max(most, 1) or (most == MOST and name.isidentifier() and len(short) <= MOST_PLAIN)
    assert short == name or len(name) > most


def test_two_names_do_not_become_one() -> None:
    others = tuple(Profile(f"work<{MATRIX}, {MATRIX}, {number}>", 0.1, "app") for number in range(3))
    found = long_names(msgspec.structs.replace(report(), profile=others))
    assert list(found.values()) == [f"work<{', '.join([MATRIX_BRIEF] * 2)}, {number}>" for number in range(3)]
    same = tuple(Profile(f"work<{number}{'0' * 60}>", 0.1, "app") for number in range(3))
    found = long_names(msgspec.structs.replace(report(), profile=same))
    assert list(found.values()) == ["work<…>", "work<…> (2)", "work<…> (3)"]


@pytest.mark.parametrize("width", [80, 110])
def test_the_terminal_has_them_whole_on_demand(width: int) -> None:
    text = terminal.render(named(), width=width)
    first = text[: text.index("\n\n")].splitlines()
    assert sum(-(-len(line) // width) for line in first) <= terminal.FIRST_LINES
    assert brief(LOOP) in first[0]
    assert max(map(len, first)) < 2 * width
    assert LOOP not in text
    assert "whole with --all" in text
    for whole in (terminal.render(named(), width=width, whole=True), terminal.render(named(), width=width, verbose=True)):
        assert LOOP in whole
        assert PAIR in whole


def test_the_page_has_them_whole_when_pointed_at() -> None:
    page = html.render(named())
    quoted = LOOP.replace("<", "&lt;").replace(">", "&gt;")
    assert f'<abbr title="{quoted}">Eigen::internal::call_dense_assignment_loop&lt;…&gt;</abbr> 3.6× faster' in page
    assert f"<code>{quoted}</code>" in page
    assert "Names in full" not in html.render(report())
    assert "<abbr" not in html.render(report())


def test_exports_for_reading_are_short_and_data_is_whole() -> None:
    shown = named()
    assert LOOP not in markdown(shown)
    assert all(len(line) < 400 for line in notes(shown))
    (result,) = sarif(shown)["runs"][0]["results"]
    assert LOOP not in result["message"]["text"]
    assert result["locations"][0]["logicalLocations"][0]["name"] == LOOP
    json.dumps(sarif(shown))
    assert readable(report()) is not shown
    assert readable(shown).hotspots[0].candidates[1].change == shown.hotspots[0].candidates[1].change
    assert len(readable(shown).passed_over[0].text) < 3 * MOST


def test_the_numbers_of_an_array_are_one_name_where_there_are_many() -> None:
    """lame: "reads xr[0], xr[1], xr[2], xr[3] and 380 more"."""
    assert as_arrays(["n", *(f"xr[{k}]" for k in range(384)), "sum"]) == ["n", "xr[...]", "sum"]
    assert as_arrays([f"position[{k}]" for k in range(3)]) == [f"position[{k}]" for k in range(3)]
    assert as_arrays([f"cell[{k}].x" for k in range(9)]) == [f"cell[{k}].x" for k in range(9)]
