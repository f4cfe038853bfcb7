"""Uses of macros that build accesses are replaced by what they expand to; where that is not safe, they are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.applying.rewritten import changed, output, rewritten

HEAD = """#include <stdio.h>
#include <stdlib.h>
struct item { double x; int n; struct item *next; };
"""
PROGRAM = (
    HEAD
    + """#define X(p) ((p)->x)
#define LIVE(A) (A && (A->n >= 0))
#define EACH(i, n) for (int i = 0; i < (n); i++)
#define SWAP(a, b) do { struct item t = (a); (a) = (b); (b) = t; } while (0)
#define NEW(T, n) ((T *)malloc((n) * sizeof(T)))
#define AT(i) p[i]
int main(void)
{
    struct item *p = NEW(struct item, 5);
    EACH(i, 5) {
        X(&p[i]) = i * 2.0; /* stays */
        AT(i).n = i - 2;
        AT(i).next = NULL;
    }
    SWAP(p[0],
         p[4]);
    EACH(i, 5)
        if (LIVE((p + i)))
            printf("%g %d in  one string\\n", X(p + i), p[i].n);
    free(p);
}
"""
)


@pytest.mark.parametrize("groups", [None, [["x", "n"]]])
def test_macros_that_build_accesses_are_expanded(groups: list[list[str]] | None, tmp_path: Path) -> None:
    new = changed({"p.c": PROGRAM}, "item", groups, tmp_path)
    text = (new / "p.c").read_text()
    assert "((*item_x(p, i)))" in text if groups is None else "item_x(p, i)" in text
    assert "EACH(i, 5) {" in text  # nothing in it has to be changed
    assert "/* stays */" in text
    assert output(new) == output(tmp_path / "old")
    assert (tmp_path / "old" / "p.c").read_text() == PROGRAM


def test_a_macro_that_names_itself_is_refused(tmp_path: Path) -> None:
    text = HEAD + (
        "static double step(struct item *p) { return p->x; }\n#define step(p) step(p->next)\n"
        "double f(struct item *p) { return step(p); }\n"
    )
    done = rewritten({"p.c": text}, "item", None, tmp_path)
    assert [(refusal.line, refusal.why) for refusal in done.refusals] == [(6, "a macro builds the access")]
    assert (tmp_path / "p.c").read_text() == text


def test_a_use_in_a_header_that_expands_in_two_ways_is_refused(tmp_path: Path) -> None:
    files = {
        "item.h": "struct item { double x, y; };\nstatic inline double of(struct item *p) { return FIRST(p); }\n",
        "a.c": '#define FIRST(p) p->x\n#include "item.h"\ndouble a(struct item *p) { return of(p); }\n',
        "b.c": '#define FIRST(p) p->y\n#include "item.h"\ndouble b(struct item *p) { return of(p); }\n',
    }
    done = rewritten(files, "item", None, tmp_path)
    assert done.texts == {}
    assert {(refusal.file.name, refusal.line) for refusal in done.refusals} == {("item.h", 2)}
    assert {name: (tmp_path / name).read_text() for name in files} == files


def test_other_obstacles_are_told_and_nothing_is_expanded(tmp_path: Path) -> None:
    text = PROGRAM + "char *g(struct item *p) { return (char *)p; }\n"
    done = rewritten({"p.c": text}, "item", None, tmp_path)
    assert done.texts == {}
    assert any(refusal.why == "a pointer to an element becomes char *" for refusal in done.refusals)
    assert (tmp_path / "p.c").read_text() == text
