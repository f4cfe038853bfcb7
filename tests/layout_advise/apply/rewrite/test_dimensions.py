"""Arrays with their dimensions in another order: declarations, parameters and subscripts; what cannot be is named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.apply import macros
from layout_advise.apply.rewrite.arrays.dimensions import turned
from layout_advise.apply.rewrite.rewrite import Rewritten
from layout_advise.apply.rewrite.syntax import TranslationUnit
from layout_advise.apply.sources import SourceFile
from layout_advise.errors import SourceError
from tests.support.applying.rewritten import SANITIZED, WARNINGS, output

HEADER = """#define ROWS 7
#define COLUMNS 5
#define AT(i, j) table[(j)][(i)]
extern double table[COLUMNS][ROWS];
void fill(double to[][ROWS], int seed);
double column(double (*from)[ROWS], int j);
double sum(int n, int m, double of[n][m]);
"""
FILL = """#include "table.h"
double table[COLUMNS][ROWS] = {{0}};

void fill(double to[][ROWS], int seed)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            to[j] [i] = (i * 31 + j * 17 + seed) % 11;
    to[ (int)to[1][2] % COLUMNS ][(int)to[(int)to[0][1] % 5][0] % ROWS] = 7;
}

double column(double (*from)[ROWS], int j)
{
    return from[j][0] + AT(1, j);
}

double sum(int n, int m, double of[n][m])
{
    double all = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            all = all * 0.5 + of[i][j];
    return all;
}
"""
MAIN = """#include <stdio.h>
#include <string.h>
#include "table.h"
int main(void)
{
    double copy[COLUMNS][ROWS];
    memset(table, 1, sizeof(table));
    fill(table, 3);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            copy[j][i] = table[j][i];
    if (sscanf("2.5", "%lf", &table[2][3]) != 1)
        return 1;
    (table)[4][(1)] += copy[1][4];
    printf("%g %g %g %zu\\n", column(table, 2), sum(COLUMNS, ROWS, table), AT(6, 4), sizeof table / sizeof(double));
    return 0;
}
"""
PROGRAM = {"table.h": HEADER, "fill.c": FILL, "main.c": MAIN}


def turn(
    files: dict[str, str], name: str, folder: Path, lengths: tuple[int, ...], order: tuple[int, ...]
) -> Rewritten:  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text)

    def make(units: Sequence[TranslationUnit]) -> Rewritten:
        return turned(units, name, lengths, order)

    sources = [SourceFile(folder / file, (), folder) for file in files if file.endswith((".c", ".cpp"))]
    return macros.rewritten(sources, folder, make)


def turned_into(files: dict[str, str], name: str, folder: Path, lengths: tuple[int, ...], order: tuple[int, ...]) -> Path:
    """The folder ``new`` with the rewritten files, nothing of which may be refused."""
    done = turn(files, name, folder / "old", lengths, order)
    assert not done.refusals, done.refusals
    (folder / "new").mkdir()
    for file, text in files.items():
        (folder / "new" / file).write_text(done.texts.get((folder / "old" / file).resolve(), text))
    return folder / "new"


def refused(program: str, folder: Path) -> list[str]:
    done = turn({"app.c": program}, "grid", folder, (4, 3), (1, 0))
    assert not done.texts
    return [refusal.why for refusal in done.refusals]


def test_declarations_parameters_and_subscripts(tmp_path: Path) -> None:
    new = turned_into(PROGRAM, "table", tmp_path, (5, 7), (1, 0))
    header, fill = (new / "table.h").read_text(), (new / "fill.c").read_text()
    assert "extern double table[ROWS][COLUMNS];" in header
    assert "void fill(double to[][COLUMNS], int seed);" in header
    assert "double (*from)[COLUMNS]" in header
    assert "double of[m][n]" in header
    assert "double table[ROWS][COLUMNS] = {{0}};" in fill
    assert "to[i] [j] = " in fill
    assert "to[(int)to[0][(int)to[1][0] % 5] % ROWS][ (int)to[2][1] % COLUMNS ] = 7;" in fill
    assert "table[(1)][(j)]" in fill, "the macro is expanded"
    assert "copy[j][i] = table[i][j];" in (new / "main.c").read_text(), "another array stays as it is"
    for flags in (WARNINGS, SANITIZED):
        assert output(new, flags) == output(tmp_path / "old", flags)


HEAD = "#include <stdio.h>\n#include <string.h>\nstatic double grid[4][3];\n"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("double *row = grid[1]; row[0] = 1;", "a row of grid is used as a whole"),
        ("double *all = &grid[0][0]; all[5] = 1;", "the address of an element goes on, and may be used to reach others"),
        ("double (*rows)[3] = grid; rows[0][1] = 1;", "grid is used as a whole"),
        ("memset(grid, 0, sizeof grid / 2);", "memset is given grid"),
        ("fwrite(grid, sizeof grid, 1, stdout);", "fwrite is given grid"),
        ("grid[0][0] = sizeof grid / sizeof grid[0];", "a row of grid is used as a whole"),
    ],
)
def test_what_depends_on_the_order_is_refused(body: str, why: str, tmp_path: Path) -> None:
    assert refused(HEAD + "int main(void) { " + body + " return (int)grid[1][2]; }\n", tmp_path) == [why]


def test_functions_that_are_given_other_arrays_are_refused(tmp_path: Path) -> None:
    taking = "static double other[9][3];\nstatic double one(double g[][3]) { return g[1][2]; }\n"
    assert refused(HEAD + taking + "int main(void) { return (int)(one(grid) + one(other)); }\n", tmp_path) == [
        "one is given another array as well"
    ]
    through = "int main(void) { double (*f)(double (*)[3]) = one; return (int)(one(grid) + f(other)); }\n"
    assert "one may be called through a pointer" in refused(HEAD + taking + through, tmp_path / "pointer")
    plain = "static double flat(double *p) { return p[4]; }\nint main(void) { return (int)flat(*grid); }\n"
    assert refused(HEAD + plain, tmp_path / "flat")


def test_declarations_of_other_forms_are_refused(tmp_path: Path) -> None:
    main = "int main(void) { return (int)grid[1][2]; }\n"
    assert refused("static double grid[4][3] = {{1, 2}};\n" + main, tmp_path) == ["grid has an initialiser"]
    named = "typedef double plane[4][3];\nstatic plane grid;\n"
    assert refused(named + main, tmp_path / "named") == ["the dimensions of grid are those of another type"]
    with pytest.raises(SourceError, match="no declaration says"):
        refused("#include <stdlib.h>\ndouble *grid;\nint main(void) { grid = malloc(96); return 0; }\n", tmp_path / "heap")


MEMBERS = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { ROWS = 4, COLUMNS = 3 };
struct grid { int n; double at[ROWS][COLUMNS], sum; };
struct world { struct grid inner[2]; int kind; };

static double column(double (*from)[COLUMNS], int j)
{
    return from[0][j] + from[3][j];
}

static void fill(struct grid *g, double by)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            g->at[i][j] = by * i + j;
}

int main(void)
{
    static struct world all;
    struct grid *g = malloc(2 * sizeof *g), zero = {0};
    if (g == NULL)
        return 1;
    memset(g, 0, 2 * sizeof(struct grid));
    fill(&g[1], 2.5);
    g[0] = g[1];
    memcpy(&all.inner[1], g, sizeof *g);
    all.inner[1].at[2][1] += zero.at[1][2] + 0.5;
    memcpy(zero.at, all.inner[1].at, sizeof zero.at);
    printf("%g %g %zu\\n", column(zero.at, 1), all.inner[1].at[2][1], sizeof g->at / sizeof(double));
    free(g);
    return 0;
}
"""


@pytest.mark.parametrize("name", ["g->at", "all.inner.at", "zero.at"])
def test_members(name: str, tmp_path: Path) -> None:
    new = turned_into({"app.c": MEMBERS}, name, tmp_path, (4, 3), (1, 0))
    text = (new / "app.c").read_text()
    assert "double at[COLUMNS][ROWS], sum;" in text
    assert "static double column(double (*from)[ROWS], int j)" in text
    assert "g->at[j][i] = by * i + j;" in text
    assert output(new, SANITIZED) == output(tmp_path / "old", SANITIZED)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("zero = {0}", "zero = {1, {{1}}, 2}", "an initialiser of struct grid"),
        ("zero = {0}", "zero = {.at = {{1}}}", "an initialiser of struct grid"),
        ("static struct world all;", "static struct world all = {{{1, {{1}}, 2}}, 3};", "an initialiser of struct "),
        ("free(g);", "fwrite(g, sizeof *g, 1, stdout); free(g);", "struct grid * is taken as bytes"),
        ("free(g);", "fwrite(&all, sizeof all, 1, stdout); free(g);", "struct world * is taken as bytes"),
        ("free(g);", "double *d = (double *)g; d[1] = 2; free(g);", "struct grid * is taken as bytes"),
        ("free(g);", "char own[999]; fill((struct grid *)own, 1); free(g);", "char *"),
        ("memcpy(&all.inner[1], g, sizeof *g);", "memcpy(&all.inner[1], g, 56);", "memcpy takes a part of struct grid *"),
        ("free(g);", "double *row = g->at[1]; row[0] = 1; free(g);", "a row of at is used as a whole"),
    ],
)
def test_what_sees_the_order_in_records_is_refused(old: str, new: str, why: str, tmp_path: Path) -> None:
    done = turn({"app.c": MEMBERS.replace(old, new)}, "g->at", tmp_path, (4, 3), (1, 0))
    assert not done.texts
    assert any(why in refusal.why for refusal in done.refusals), done.refusals


def test_a_member_of_a_union_is_refused(tmp_path: Path) -> None:
    main = "int main(void) { union grid g = {{{0}}}; return (int)g.at[1][2]; }\n"
    union = f"union grid {{ double at[4][3]; char bytes[96]; }};\n{main}"
    done = turn({"app.c": union}, "g.at", tmp_path / "union", (4, 3), (1, 0))
    assert [refusal.why for refusal in done.refusals] == ["at is a member of a union"]


CLASS = """#include <cstdio>
struct Table {
    double at[4][3] = {};
    double sum(int j) const { return at[0][j] + this->at[3][j]; }
    template <class T> void add(T by) { at[1][2] += by; }
};
struct Named : Table {
    int kind = 2;
};
template <class T> double corner(const T &of) { return of.at[3][2]; }
int main()
{
    Named one;
    for (int row = 1; row < 3; row++)
        one.at[row][row] = 3;
    one.add(1.5);
    const Named other = one;
    std::printf("%g %g\\n", other.sum(1), other.at[1][2]);
    return 0;
}
"""


def test_members_of_classes(tmp_path: Path) -> None:
    plain = CLASS.replace("template <class T> double corner(const T &of) { return of.at[3][2]; }\n", "")
    done = turn({"app.cpp": plain}, "this->at", tmp_path / "old", (4, 3), (1, 0))
    assert not done.refusals
    (text,) = done.texts.values()
    assert "double at[3][4] = {};" in text
    assert "at[2][1] += by;" in text
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "app.cpp").write_text(text)
    flags = ("-std=c++17", "-Wall", "-Wextra", "-fsanitize=address,undefined")
    assert output(tmp_path / "new", flags) == output(tmp_path / "old", flags)
    done = turn({"app.cpp": CLASS}, "this->at", tmp_path / "template", (4, 3), (1, 0))
    assert [refusal.why for refusal in done.refusals] == ["a template uses at"]


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """A program that fills and reads an array in loops that are nested in any order, its lengths and a new order."""
    rank = draw(st.integers(2, 3))
    lengths = tuple(draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank)))
    order = draw(st.sampled_from(sorted(permutations(range(rank)))))
    names = "ijk"[:rank]
    dims, subscripts = "".join(f"[{n}]" for n in lengths), "".join(f"[{i}]" for i in names)
    shifted = "".join(f"[({draw(st.sampled_from(names))} + {draw(st.integers(0, 4))}) % {length}]" for length in lengths)
    nested = "".join(f"[(a{subscripts} + {draw(st.integers(0, 3))}) % {length}]" for length in lengths)
    statements = draw(st.permutations([f"a{subscripts} += 3 * s + i;", f"s = s * 7 + a{shifted};", f"s ^= a{nested};"]))
    loops = draw(st.permutations([f"for (int {i} = 0; {i} < {n}; {i}++)" for i, n in zip(names, lengths, strict=True)]))
    body = " ".join(statements)
    declared, member = f"static unsigned a{dims};\n", draw(st.booleans())
    if draw(st.booleans()):
        text = f"static unsigned walk(unsigned a{dims}, unsigned s) {{ {' '.join(loops)} {{ {body} }} return s; }}\n"
        text += "int main(void) { unsigned s = walk(a, 5);"
    else:
        text = f"int main(void) {{ unsigned s = 5; {' '.join(loops)} {{ {body} }}"
    if member:
        declared = f"struct table {{ char kind; unsigned a{dims}; }};\nstatic struct table all;\n"
        inside, _, main = text.rpartition("int main")
        text = inside + "int main" + re.sub(r"\ba(?=[,[])", "all.a", main)
    return f'#include <stdio.h>\n{declared}{text} printf("%u\\n", s); return 0; }}\n', lengths, order


@settings(max_examples=25)
@given(programs())
def test_random_programs_print_the_same(tmp_path_factory: pytest.TempPathFactory, made: tuple[str, tuple, tuple]) -> None:  # type: ignore[type-arg]
    text, lengths, order = made
    folder = tmp_path_factory.mktemp("turned")
    new = turned_into({"app.c": text}, "all.a" if "struct table" in text else "a", folder, lengths, order)
    flags = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-w")
    assert output(new, flags) == output(folder / "old", flags)
