"""Changed source formatted as the project has it: whole files that are kept so, else the changed lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.apply import formatted
from layout_advise.apply.formatted import format_changed
from layout_advise.apply.sources import SourceFile
from layout_advise.apply.stage import Applied, ApplyRequest, apply
from layout_advise.apply.trees import SourceTree
from layout_advise.apply.words import lines
from layout_advise.reports.model.wanted import WantedLayout, WantedRecord
from tests.support.sample_report import candidate, report

STYLE = "BasedOnStyle: GNU\nColumnLimit: 70\n"
PROGRAM = """#include <stdio.h>
#include <stdlib.h>
struct body { double at, v; int kind; };
static double energy(const struct body *all, int n)
{
  double sum = 0;   /* of all */
  for (int k = 0; k < n; k++)
    sum += all[k].v * all[k].v * all[k].at * (all[k].kind + all[k].kind % 2);
  return   sum;
}
int main(void)
{
  struct body *all = malloc(5 * sizeof *all);
  for (int k = 0; k < 5; k++) { all[k].at = k; all[k].v = 2 * k; all[k].kind = k % 3; }
  printf("%g\\n", energy(all, 5));
  free(all);
  return 0;
}
"""


def project(folder: Path, text: str, style: str = STYLE) -> WantedLayout:
    root = folder / "tree"
    root.mkdir()
    (root / "app.c").write_text(text)
    if style:
        (root / ".clang-format").write_text(style)
    record = WantedRecord("struct body", (("at",), ("v", "kind")))
    return WantedLayout(report().hotspots[0], candidate(1, None), (record,))


def applied(folder: Path, layout: WantedLayout) -> Applied:
    root = folder / "tree"
    tree = SourceTree(root, Path("app"), Path(), "gcc -std=c11 -Wall -Wextra -Werror -o app app.c")
    request = ApplyRequest(layout, (SourceFile(root / "app.c", ("-std=c11",), root, "gcc"),), tree, (), 0)
    return apply(request, folder / "work")


def by_clang_format(text: str, folder: Path) -> str:
    command = [str(formatted._tool()), "--style=file", f"--assume-filename={folder / 'tree' / 'app.c'}"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def test_a_file_that_is_kept_formatted_stays_so(tmp_path: Path) -> None:
    layout = project(tmp_path, PROGRAM)
    source = tmp_path / "tree" / "app.c"
    source.write_text(by_clang_format(PROGRAM, tmp_path))
    done = applied(tmp_path, layout)
    new = done.texts[Path("app.c")]
    assert done.ran
    assert not done.unformatted
    assert by_clang_format(new, tmp_path) == new
    assert max(map(len, new.splitlines())) <= 70


def test_elsewhere_only_the_changed_lines_are_formatted(tmp_path: Path) -> None:
    done = applied(tmp_path, project(tmp_path, PROGRAM))
    new = done.texts[Path("app.c")]
    assert done.ran
    for kept in ("  double sum = 0;   /* of all */\n", "  return   sum;\n"):
        assert kept in new
    assert "body_at (all, k)" in new, "GNU style has a space in front of arguments"
    assert max(map(len, new.splitlines())) <= 70


def test_without_a_style_nothing_is_formatted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatted, "_tool", lambda: pytest.fail("nothing asks for it"))
    done = applied(tmp_path, project(tmp_path, PROGRAM, style=""))
    assert "sum += (*body_v(all, k)) * (*body_v(all, k))" in done.texts[Path("app.c")]


def test_lines_that_are_only_removed_change_nothing_else(tmp_path: Path) -> None:
    project(tmp_path, PROGRAM)
    (tmp_path / "new").mkdir()
    fewer = PROGRAM.replace("  free(all);\n", "")
    (tmp_path / "new" / "app.c").write_text(fewer)
    old, new = (SourceTree(tmp_path / name, Path("app"), Path(), "") for name in ("tree", "new"))
    assert not format_changed(old, new, [Path("app.c")])
    assert (tmp_path / "new" / "app.c").read_text() == fewer


@pytest.mark.parametrize("wrong", ["missing", "style"])
def test_why_it_is_not_formatted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    layout = project(tmp_path, PROGRAM, style=STYLE if wrong == "missing" else "BasedOnStyle: None such\n")
    if wrong == "missing":
        monkeypatch.setattr(formatted, "_tool", lambda: None)
    done = applied(tmp_path, layout)
    (told,) = (line for line in lines(layout, done, None) if "format" in line)
    assert told.startswith("not formatted as its .clang-format asks for: ")
    assert done.ran, "it is the same program"
