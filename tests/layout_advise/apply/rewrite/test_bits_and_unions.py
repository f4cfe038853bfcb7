"""Bit fields that stand side by side, and unions, move as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.errors import SourceError
from tests.support.applying.rewritten import CXX_SANITIZED, SANITIZED, WARNINGS, Groups, changed, output, rewritten
from tests.support.compilers import needs_clang

PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum kind { none, some, many };
struct item {
    char tag;
    unsigned used : 1, count : 5;
    signed int small : 4;
    double x;
    struct item *next;
    union { int whole; float part; unsigned char bytes[4]; } value;
    unsigned long wide : 40;
    _Bool last : 1;
    enum kind kind : 3;
    struct { short a, b; } pair;
};
static struct item table[5];
static struct item made(int n)
{
    struct item t = {'a', 1, n, -n, 0.5 * n, NULL, {n}, n * 1000003l, n == 2, some, {n, 3}};
    t.value.part = 1.5f * n;
    return t;
}
static int sum(const struct item *p)
{
    int s = 0;
    for (; p; p = p->next)
        s += p->used * 100 + p->count + p->small + (p->last ? 7 : 0) + p->pair.b;
    return s;
}
int main(void)
{
    const int n = 7;
    struct item *p = calloc(n, sizeof *p), single = made(3);
    for (int i = 0; i < n; i++) {
        p[i] = made(i);
        p[i].next = i > 0 ? &p[i - 1] : NULL;
        p[i].count += 2;
        p[i].used ^= i & 1;
        p[i].kind = p[i].kind == some ? many : none;
        p[i].wide = ((unsigned long)i << 33) + p[i].count++;
    }
    single.small--;
    table[4] = single;
    table[3] = p[2];
    memset(&p[5], 0, sizeof *p);
    memcpy(table, p + 3, 2 * sizeof *p);
    p[1].value.whole = 16;
    p[1].tag = 'z';
    for (struct item *q = table; q < table + 5; q++)
        printf("%c %d %d %d %g %lu %d %d %d\\n", q->tag ? q->tag : '-', q->used, q->count, q->small, q->value.part,
               (unsigned long)q->wide, q->last, q->kind, q->pair.a);
    printf("%d %d %d %g\\n", sum(&p[4]), sum(&single), p[1].value.bytes[0], p[6].x);
    free(p);
}
"""
LAYOUTS: list[tuple[Groups | None, tuple[int, ...]]] = [
    (None, ()),
    ([["tag", "used", "small", "x", "next", "value"], ["wide", "last", "pair"]], ()),
    ([["x", "value"], ["next", "wide"]], (4, 0)),
    ([["value", "x"], ["tag", "used|count|small"]], (3, 2)),  # as reports name bit fields side by side
]


@pytest.mark.parametrize(("groups", "blocks"), LAYOUTS)
def test_bit_fields_and_unions(groups: Groups | None, blocks: tuple[int, ...], tmp_path: Path) -> None:
    new = changed({"p.c": PROGRAM}, "item", groups, tmp_path, guard=True, blocks=blocks)
    for level in ("-O1", "-O2"):
        assert output(new, (*WARNINGS, level)) == output(tmp_path / "old", (*WARNINGS, level))


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "blocks"), LAYOUTS)
def test_bit_fields_by_clang_and_sanitizers(groups: Groups | None, blocks: tuple[int, ...], tmp_path: Path) -> None:
    new = changed({"p.c": PROGRAM}, "item", groups, tmp_path, blocks=blocks)
    assert output(new, SANITIZED) == output(tmp_path / "old", SANITIZED)
    assert output(new, (*WARNINGS, "-O3")) == output(tmp_path / "old", (*WARNINGS, "-O3"))


@needs_clang
def test_bit_fields_by_clang(tmp_path: Path) -> None:
    new = changed({"p.c": PROGRAM}, "item", None, tmp_path)
    assert output(new, (*WARNINGS, "-O2"), "clang") == output(tmp_path / "old", (*WARNINGS, "-O2"), "clang")


def test_bit_fields_stay_together(tmp_path: Path) -> None:
    text = "struct item { double x; unsigned a : 3, b : 2; int n; };\n"
    with pytest.raises(SourceError, match="a, b are bit fields side by side, and stay together"):
        rewritten({"p.c": text}, "item", [["a", "x"], ["b"]], tmp_path)


PACKED = "lies elsewhere than its type would put it (packed, or aligned more)"


@pytest.mark.parametrize(
    ("declaration", "why"),
    [
        ("struct __attribute__((packed)) item { char c; int x; };", f"member x {PACKED}"),
        ("struct item { char c; _Alignas(16) int x; short s; };", f"member x {PACKED}"),
        (
            "#pragma pack(push, 1)\nstruct item { double x; char c; };\n#pragma pack(pop)",
            "the size of struct item is not what",
        ),
    ],
)
def test_members_that_lie_elsewhere(declaration: str, why: str, tmp_path: Path) -> None:
    """Such a record by itself is no array of one: it was written, and printed something else."""
    text = f"{declaration}\nstatic struct item one;\nstruct item *of(void) {{ return &one; }}\n"
    done = rewritten({"p.c": text}, "item", None, tmp_path)
    assert [why in refusal.why for refusal in done.refusals] == [True], done.refusals


def test_a_record_that_begins_with_a_line(tmp_path: Path) -> None:
    text = (
        "#include <stdio.h>\nstruct item { _Alignas(64) double x; int n; };\nstatic struct item all[3], one;\n"
        "static void put(struct item *p, int n) { p->n = n; p->x = n; }\nint main(void)\n{\n    put(&all[1], 2);\n"
        '    put(&one, 5);\n    printf("%g %d %g %d %zu\\n", all[1].x, all[1].n, one.x, one.n, sizeof one);\n}\n'
    )
    new = changed({"p.c": text}, "item", None, tmp_path, guard=True)
    assert output(new, SANITIZED) == output(tmp_path / "old", SANITIZED) == "2 2 5 5 64\n"


@pytest.mark.parametrize(
    ("fields", "groups", "why"),
    [
        ("char c; unsigned a : 30; double x;", [["x"], ["c", "a"]], "bit field a would lie elsewhere in the new order"),
        (
            "unsigned a : 3, : 4; double x; int n;",
            [["x"], ["a", "n"]],
            "bit fields without a name, where the members get another order",
        ),
        ("double x; struct { struct item *next; int n; } l;", None, "member l holds pointers to struct item"),
        ("double x; struct link links[3];", None, "member links holds pointers to struct item"),
        ("double x; union { struct link of; int n; } u;", None, "member u holds pointers to struct item"),
        ("double x; union { struct item *next; int n; } u;", None, "it is part of a union"),
    ],
)
def test_what_is_refused(fields: str, groups: Groups | None, why: str, tmp_path: Path) -> None:
    text = f"struct item;\nstruct link {{ int n; struct item *at; }};\nstruct item {{ {fields} }};\nstruct item all[3];\n"
    done = rewritten({"p.c": text}, "item", groups, tmp_path)
    assert any(why in refusal.why and refusal.line == 3 for refusal in done.refusals), done.refusals


def test_cxx_has_no_references_to_bit_fields(tmp_path: Path) -> None:
    text = "struct item { double x; unsigned a : 3; };\nitem all[3];\nint main() { all[1].a = 2; }\n"
    done = rewritten({"p.cpp": text}, "item", None, tmp_path)
    assert [refusal.why for refusal in done.refusals] == ["bit fields, to which C++ has no references"]


def test_unions_in_cxx(tmp_path: Path) -> None:
    text = """#include <cstdio>
#include <vector>
struct item {
    char kind;
    union { int whole; float part; } value;
    double x;
    int part, element;
    float e, w, o;
};
int main()
{
    std::vector<item> v(4);
    for (item &i : v) {
        i.value.part = 2.5f;
        i.x = i.value.part;
    }
    v[1].value.whole = 7;
    v[1].part = v[1].element = 1;
    v[1].e = v[1].w = v[1].o = 2.0f;
    v[2] = v[1];
    const item copy = v[2];
    std::printf("%d %g %g %d\\n", copy.value.whole, v[3].value.part, v[0].x, v[1].value.whole);
}
"""
    for k, groups in enumerate((None, [["x", "kind"]])):
        new = changed({"p.cpp": text}, "item", groups, tmp_path / str(k))
        assert output(new, CXX_SANITIZED) == output(tmp_path / str(k) / "old", CXX_SANITIZED) == "7 2.5 2.5 7\n"
