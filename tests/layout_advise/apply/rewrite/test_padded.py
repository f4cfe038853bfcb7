"""Padded elements: the record is aligned, and so is all memory that elements lie in; what cannot be is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.rewrite.target import target
from layout_advise.apply.sources import SourceFile, aligns_new
from layout_advise.errors import SourceError
from tests.support.applying.rewritten import CXX_SANITIZED, SANITIZED, WARNINGS, changed, output, rewritten
from tests.support.compilers import needs_clang

HEAD = """#ifndef ALIGNED
#define ALIGNED 8
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct body { double at[3], v[2]; };
struct world { int n; struct body one; struct body more[2]; };
"""
PROGRAM = (
    HEAD
    + """
static struct body table[3];

static int by_x(const void *a, const void *b)
{
    const struct body *p = a, *q = b;
    return (p->at[0] > q->at[0]) - (p->at[0] < q->at[0]);
}

int main(void)
{
    int n = 5;
    struct body *p = malloc(n * sizeof *p), *none = NULL;
    struct body *q = (struct body *)calloc(n, sizeof(struct body));
    struct world *w = malloc (sizeof(struct world));
    if (!p || !q || !w)
        return 1;
    for (int i = 0; i < n; i++)
        p[i] = (struct body){{9 - i, i, i}, {1, 2}};
    p = realloc(p, 9 * sizeof *p);
    if (!p)
        return 1;
    memcpy(&p[5], p, 4 * sizeof(struct body));
    memcpy(w->more, q, 2 * sizeof(struct body));
    w->one = p[1];
    qsort(p, 9, sizeof *p, by_x);
    uintptr_t places = 0;
    for (int i = 0; i < 9; i++) {
        printf("%g %g ", p[i].at[0], p[i].v[1]);
        places |= (uintptr_t)&p[i].at[0];
    }
    places |= (uintptr_t)&q->at[0] | (uintptr_t)&w->one.at[0] | (uintptr_t)&w->more[1].at[0] | (uintptr_t)&table[1].at[0];
    printf("%g %g %d %d\\n", q[4].v[1], w->one.at[1] + w->more[1].at[0], none == NULL, places % ALIGNED == 0);
    free(p);
    free(q);
    free(w);
    return 0;
}
"""
)
MEMBERS = [["at", "v"]]


def flags(own: tuple[str, ...], aligned: int) -> tuple[str, ...]:
    return (*own, f"-DALIGNED={aligned}")


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
def test_all_memory_of_elements_is_aligned(compiler: str, tmp_path: Path) -> None:
    new = changed({"app.c": PROGRAM}, "body", MEMBERS, tmp_path, padded=64, guard=True)
    text = (new / "app.c").read_text()
    assert "struct __attribute__((aligned(64))) body {" in text
    assert "aligned_alloc(64, n * sizeof *p)" in text
    assert "sizeof(struct body) == 64" in text
    own = SANITIZED if compiler == "gcc" else WARNINGS
    before = output(tmp_path / "old", flags(own, 8), compiler)
    assert output(new, flags(own, 64), compiler) == before
    assert before.endswith("1 1\n")


def test_members_may_get_another_order_too(tmp_path: Path) -> None:
    new = changed({"app.c": PROGRAM.replace("{{9 - i, i, i}, {1, 2}}", "{.at = {9 - i}, .v = {1, 2}}")}, "body",
                  [["v", "at"]], tmp_path, ordered=True, padded=64)  # fmt: skip
    assert output(new, flags(SANITIZED, 16)) == output(tmp_path / "old", flags(SANITIZED, 8))


SMALL = HEAD.replace("double at[3], v[2]", "float at[3]")


def test_what_malloc_aligns_stays_as_it_is(tmp_path: Path) -> None:
    """To 16 bytes it aligns by itself."""
    body = "int main(void) { struct body *p = malloc(4 * sizeof *p); if (p) p->at[0] = 1; free(p); return !p; }\n"
    text = (changed({"app.c": SMALL + body}, "body", [["at"]], tmp_path, padded=16) / "app.c").read_text()
    assert "malloc(4 * sizeof *p)" in text
    assert "aligned(16)" in text


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("struct body *p = malloc(80);", "malloc is not told the size"),
        ("struct body *p = given(2 * sizeof(struct body));", "given gives memory that is not aligned"),
        ("void *m = malloc(2 * sizeof(struct body)); struct body *p = m;", "m may be memory that is not aligned"),
        ("struct body *p = of(malloc(2 * sizeof(struct body)));", "of gives memory that is not aligned"),
        ("struct body q[2], *p = q; memset(p, 0, 80);", "memset is not told the size"),
        ("struct body q[2], *p = q; qsort(q, 2, 40, order);", "qsort is not told the size"),
        ("struct body *p = MADE(2);", "a macro calls malloc"),
        ("struct world *p = malloc(sizeof(int) + 120);", "malloc is not told the size"),
    ],
)
def test_memory_that_may_not_be_aligned_is_refused(line: str, why: str, tmp_path: Path) -> None:
    functions = (
        "void *given(size_t n);\nvoid *of(void *m);\nint order(const void *a, const void *b);\n"
        "#define MADE(n) malloc((n) * sizeof(struct body))\n"
    )
    source = f"{HEAD}{functions}int main(void) {{ {line} return p == NULL; }}\n"
    done = rewritten({"app.c": source}, "body", MEMBERS, tmp_path, padded=64)
    if why.startswith("a macro"):  # it is expanded, and then it can be
        assert any("aligned_alloc(64, (2) * sizeof(struct body))" in text for text in done.texts.values()), done.refusals
        return
    assert [refusal.line for refusal in done.refusals if why in refusal.why] == [source.count("\n")], done.refusals


def test_a_handler_that_is_called_directly_is_given_anything(tmp_path: Path) -> None:
    body = """static double x_of(void *m) { struct body *p = m; return p->v[0]; }
int main(void) { char bytes[200] = {0}; return x_of(bytes) > 0; }
"""
    done = rewritten({"app.c": HEAD + body}, "body", MEMBERS, tmp_path, padded=64)
    assert [refusal.why for refusal in done.refusals] == ["m may be memory that is not aligned"]


CXX = """#ifndef ALIGNED
#define ALIGNED 8
#endif
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>
class body { public: double at[3]; double v[2]; double x() const { return at[0]; } };
int main()
{
    std::vector<body> all(3);
    all.push_back(body());
    body *const some = new body[2];
    std::unique_ptr<body> one(new body());
    std::uintptr_t places = 0;
    for (const body &b : all)
        places |= reinterpret_cast<std::uintptr_t>(&b.at[0]);
    places |= reinterpret_cast<std::uintptr_t>(&some[1].at[0]) | reinterpret_cast<std::uintptr_t>(&one->at[0]);
    std::printf("%g %d\\n", all[3].x(), places % ALIGNED == 0);
    delete[] some;
    return 0;
}
"""


def test_in_cxx17_new_and_containers_align(tmp_path: Path) -> None:
    new = changed({"app.cpp": CXX}, "body", MEMBERS, tmp_path, padded=64)
    assert "class alignas(64) body {" in (new / "app.cpp").read_text()
    own = tuple(flag.replace("c++11", "c++17") for flag in CXX_SANITIZED)
    assert output(new, flags(own, 64)) == output(tmp_path / "old", flags(own, 8)) == "0 1\n"


def test_the_compiler_says_whether_new_aligns(tmp_path: Path) -> None:
    units = {flag: SourceFile(tmp_path / "a.cpp", (flag,), tmp_path, "g++") for flag in ("-std=c++11", "-std=gnu++17")}
    assert {flag: aligns_new(one) for flag, one in units.items()} == {"-std=c++11": False, "-std=gnu++17": True}
    assert not aligns_new(SourceFile(tmp_path / "a.cpp", (), tmp_path, "no-such-compiler"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("alignas(64) static char m[64]; body *p = new (m) body;", "new is given a place"),
        (
            "struct own { body b; void *operator new(std::size_t); }; body *p = nullptr;",
            "an operator new of the program's own",
        ),
    ],
)
def test_in_cxx_memory_of_the_programs_own_is_refused(line: str, why: str, tmp_path: Path) -> None:
    head = "#include <new>\nclass body { public: double at[3]; double v[2]; };\n"
    source = f"{head}int main() {{ {line} return p == nullptr; }}\n"
    done = rewritten({"app.cpp": source}, "body", MEMBERS, tmp_path, padded=64)
    assert any(why in refusal.why for refusal in done.refusals), done.refusals


def test_sizes_that_do_not_come_out(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(HEAD)
    record = next(node for node in parse(tmp_path / "a.c", (), tmp_path).declarations if node.name == "body")
    for padded, groups, why in [(32, MEMBERS, "do not come to 32"), (48, MEMBERS, ""), (64, [["at"], ["v"]], "are apart")]:
        if not why:
            assert target(record, groups, "", padded=padded).aligned == 16
            continue
        with pytest.raises(SourceError, match=why):
            target(record, groups, "", padded=padded)
