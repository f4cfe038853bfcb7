"""Padded elements in a program of several files: built and run, or refused where C++ would not align what it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.apply.sources import SourceFile
from layout_advise.apply.stage import Applied, ApplyRequest, apply
from layout_advise.apply.trees import SourceTree
from layout_advise.errors import SourceError
from layout_advise.reports.model.wanted import WantedLayout, WantedRecord
from tests.support.sample_report import candidate, report

HEADER = """#pragma once
#include <vector>
struct body { double at[3], v[2]; };
std::vector<body> bodies(int n);
"""
MADE = """#include "body.hpp"
std::vector<body> bodies(int n)
{
    std::vector<body> all;
    for (int k = 0; k < n; k++)
        all.push_back({{1.0 * k, 0, 0}, {0, 2.0 * k}});
    return all;
}
"""
MAIN = """#include "body.hpp"
#include <cstdio>
int main()
{
    double sum = 0;
    for (const body &one : bodies(9))
        sum += one.at[0] * one.v[1];
    std::printf("%g %d\\n", sum, (int)sizeof(double));
    return 0;
}
"""


def padded(standard: str, folder: Path) -> Applied:
    root = folder / "tree"
    root.mkdir()
    for name, text in (("body.hpp", HEADER), ("made.cpp", MADE), ("main.cpp", MAIN)):
        (root / name).write_text(text)
    sources = tuple(SourceFile(root / name, (standard,), root, "g++") for name in ("made.cpp", "main.cpp"))
    tree = SourceTree(root, Path("app"), Path(), f"g++ {standard} -o app made.cpp main.cpp")
    record = WantedRecord("body", (("at", "v"),), padded=64)
    layout = WantedLayout(report().hotspots[0], candidate(1, None), (record,))
    return apply(ApplyRequest(layout, sources, tree, (), 0), folder / "work")


def test_it_is_built_and_prints_the_same(tmp_path: Path) -> None:
    done = padded("-std=c++17", tmp_path)
    assert done.ran
    assert "+struct alignas(64) body { double at[3], v[2]; };" in done.patch
    assert done.changed == (Path("body.hpp"),)


def test_before_cxx17_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"made\.cpp is compiled as C\+\+ before 17") as caught:
        padded("-std=c++14", tmp_path)
    assert caught.value.hint == "compile it with -std=c++17"
