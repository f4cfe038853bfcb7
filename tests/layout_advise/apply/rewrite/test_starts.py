"""Arrays that begin with a cache line: variables and what is allocated at a place; what cannot be is named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from layout_advise.apply import macros
from layout_advise.apply.rewrite.arrays.starts import begun
from layout_advise.apply.rewrite.rewrite import Rewritten
from layout_advise.apply.rewrite.syntax import TranslationUnit
from layout_advise.apply.sources import SourceFile
from layout_advise.errors import SourceError
from tests.support.applying.rewritten import CXX_SANITIZED, CXX_WARNINGS, SANITIZED, WARNINGS, output

PROGRAM = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define N 37

static char before = 1, table[3][N] = {{2}};

static int off(const void *p) { return (int)((uintptr_t)p % 64); }

/* Reads the lines. */
int main(int count, char **names)
{
    size_t n = (size_t)count * N;
    char *sum = ALLOCATED;
    char local[N];
    for (int i = 0; i < N; i++)
        local[i] = sum[i] = (char)(i + before + names[0][0]);
    printf("%d %d\\n", local[3] + table[0][0], sum[5]);
    fprintf(stderr, "%d %d %d\\n", off(table), off(local), off(sum));
    free(sum);
    return 0;
}
"""
ALLOCATED = {
    "malloc": "malloc(n + (size_t)before)",
    "calloc": "calloc(n, sizeof *sum)",
    "realloc": "realloc(malloc(1), n)",
    "aligned": "aligned_alloc(16, n / 16 * 16 + 16)",
}
SITE = PROGRAM.splitlines().index("    char *sum = ALLOCATED;") + 1


def start(text: str, name: str, site: str, folder: Path, file: str = "app.c") -> Rewritten:
    folder.mkdir(parents=True)
    (folder / file).write_text(text)

    def make(units: Sequence[TranslationUnit]) -> Rewritten:
        return begun(units, name, site)

    return macros.rewritten([SourceFile(folder / file, (), folder)], folder, make)


def program(allocated: str) -> str:
    return PROGRAM.replace("ALLOCATED", allocated)


def started(text: str, name: str, site: str, folder: Path, file: str = "app.c") -> str:
    """The new text, in ``folder / "new"``; nothing may be refused."""
    done = start(text, name, site, folder / "old", file)
    assert not done.refusals, done.refusals
    (made,) = done.texts.values()
    (folder / "new").mkdir()
    (folder / "new" / file).write_text(made)
    return made


@pytest.mark.parametrize("how", ["malloc", "calloc", "aligned"])
def test_what_is_allocated(how: str, tmp_path: Path) -> None:
    text = program(ALLOCATED[how])
    made = started(text, "sum", f"app.c:{SITE}", tmp_path)
    assert how == "aligned" or "/* Reads the lines. */\nint main" in made, "the function stands before the comment"
    told = "if (off(sum)) return 9;\n    fprintf(stderr"
    (tmp_path / "new" / "app.c").write_text(made.replace("fprintf(stderr", told, 1))
    for flags in (WARNINGS, SANITIZED):
        assert output(tmp_path / "new", flags) == output(tmp_path / "old", flags)


def test_of_two_calls_on_a_line_none_is_taken(tmp_path: Path) -> None:
    done = start(program(ALLOCATED["realloc"]), "sum", f"app.c:{SITE}", tmp_path / "old")
    assert [one.why for one in done.refusals] == ["several calls there allocate"]


def test_memory_that_grows(tmp_path: Path) -> None:
    text = program("NULL;\n    sum = realloc(sum, n)")
    made = started(text, "sum", f"app.c:{SITE + 1}", tmp_path)
    assert "sum = from_line_regrown(sum, n);" in made
    (tmp_path / "new" / "app.c").write_text(made.replace("fprintf(stderr", "if (off(sum)) return 9;\n    fprintf(stderr", 1))
    for flags in (WARNINGS, SANITIZED):
        assert output(tmp_path / "new", flags) == output(tmp_path / "old", flags)


@pytest.mark.parametrize(("name", "declared"), [("table", "table[3][N] __attribute__((aligned(64))) = {{2}}"),
                                                ("local", "local[N] __attribute__((aligned(64)));")])  # fmt: skip
def test_a_variable(name: str, declared: str, tmp_path: Path) -> None:
    made = started(program(ALLOCATED["malloc"]), name, "", tmp_path)
    assert declared in made
    told = f"if (off({name})) return 9;\n    fprintf(stderr"
    (tmp_path / "new" / "app.c").write_text(made.replace("fprintf(stderr", told, 1))
    for flags in (WARNINGS, SANITIZED):
        assert output(tmp_path / "new", flags) == output(tmp_path / "old", flags)


def test_in_cxx(tmp_path: Path) -> None:
    text = program("static_cast<char *>(std::malloc(n))").replace("stdlib.h", "cstdlib")
    made = started(text, "sum", f"app.cpp:{SITE}", tmp_path, "app.cpp")
    assert "static_cast<char *>(from_line_begun(n))" in made
    for flags in (CXX_WARNINGS, CXX_SANITIZED):
        assert output(tmp_path / "new", flags) == output(tmp_path / "old", flags)


WRAPPED = """#include <stdlib.h>
#define ARRAY(n) malloc((n) * sizeof(double))
void *given(size_t bytes) { return malloc(bytes); }
double *made(void) { return ARRAY(9); }
void *some(size_t n, size_t size) { return malloc(n < 1 ? size : n * size); }
"""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (1, "no call of malloc, calloc or realloc is there"),
        (3, "malloc is called by an allocator of the program's own, which gives other memory, too"),
        (5, "malloc is called by an allocator of the program's own, which gives other memory, too"),
    ],
)
def test_what_cannot_be_written_is_named(line: int, why: str, tmp_path: Path) -> None:
    done = start(WRAPPED, "a", f"app.c:{line}", tmp_path / "old")
    assert not done.texts
    assert [(one.line, one.why) for one in done.refusals] == [(line, why)]


def test_a_macro_that_allocates_is_expanded(tmp_path: Path) -> None:
    assert "return from_line_begun((9) * sizeof(double));" in started(WRAPPED, "a", "app.c:4", tmp_path)


def test_new_is_refused(tmp_path: Path) -> None:
    done = start("double *made() { return new double[9]; }\n", "a", "app.cpp:1", tmp_path / "old", "app.cpp")
    assert [one.why for one in done.refusals] == ["new gives memory that begins anywhere, and delete takes no other"]


@pytest.mark.parametrize(
    ("name", "site", "why"),
    [
        ("other", "", "no variable other is an array"),
        ("sum", "main.c:3", "no source that was read is called main.c"),
    ],
)
def test_what_is_not_there_is_told(name: str, site: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=why):
        start(program(ALLOCATED["malloc"]), name, site, tmp_path / "old")
