"""Members that are arrays of numbers, each of which gets an array of its own over all elements."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.rewrite.target import target
from layout_advise.errors import SourceError
from tests.support.applying.rewritten import (
    CXX_SANITIZED,
    CXX_WARNINGS,
    SANITIZED,
    WARNINGS,
    Groups,
    changed,
    output,
    rewritten,
)
from tests.support.compilers import needs_clang

HEAD = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct body { double at[3]; float v[3]; int id, m[2][2]; };
"""
PROGRAM = (
    HEAD
    + """
static struct body still = {{1, 2, 3}, {4, 5, 6}, 7, {{1, 2}, {3, 4}}};

static double length(const struct body *b, int dims)
{
    double sum = 0;
    for (int k = 0; k < dims; k++)
        sum += b->at[k] * b->at[k];
    return sum;
}

static void moved(struct body *all, int n, double dt)
{
    for (struct body *b = all; b < all + n; b++)
        for (int k = 0; k < 3; k++) {
            b->at[k] += b->v[k] * dt;
            double *own = &b->at[k];
            *own += 0.5;
        }
}

int main(int argc, char **argv)
{
    int n = 7 + argc - 1;
    struct body *all = calloc(n, sizeof *all), one = still;
    (void)argv;
    if (!all)
        return 1;
    for (int i = 0; i < n; i++) {
        all[i] = one;
        all[i].at[0] = i;
        all[i].at[2] += all[(i + 1) % n].v[1] + one.at[1];
        (*(all + i)).v[2]--;
        all[i].m[1][0] = i;
    }
    moved(all, n, 0.25);
    memcpy(&all[1], &all[4], 2 * sizeof *all);
    memset(&all[6], 0, sizeof all[6]);
    all = realloc(all, 2 * n * sizeof *all);
    if (!all)
        return 1;
    FILE *file = tmpfile();
    if (!file || fwrite(all, sizeof *all, n, file) != (size_t)n)
        return 1;
    rewind(file);
    if (fread(all + n, sizeof *all, n, file) != (size_t)n)
        return 1;
    double sum = 0;
    for (int i = 0; i < 2 * n; i++)
        sum += length(all + i, 3) + all[i].v[i % 3] + all[i].m[1][0] + length(&one, 2);
    printf("%.17g %d %d\\n", sum, (int)sizeof all->at, (int)(sizeof all[0].v / sizeof all[0].v[0]));
    fclose(file);
    free(all);
    return 0;
}
"""
)
LAYOUTS: list[tuple[Groups, tuple[str, ...]]] = [
    ([["at"]], ("at",)),
    ([["v"], ["at"]], ("v", "at")),
    ([["at"], ["id", "m"]], ("at",)),
]


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
@pytest.mark.parametrize(("groups", "apart"), LAYOUTS)
def test_it_prints_the_same(groups: Groups, apart: tuple[str, ...], compiler: str, tmp_path: Path) -> None:
    own = SANITIZED if compiler == "gcc" else WARNINGS
    new = changed({"app.c": PROGRAM}, "body", groups, tmp_path, apart=apart)
    assert "body_at(b, 0, k)" in (new / "app.c").read_text()
    assert output(new, own, compiler) == output(tmp_path / "old", own, compiler)


def test_in_a_pool_too(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
int main(void)
{
    struct body *b = malloc(sizeof *b), *c = calloc(1, sizeof *c);
    if (!b || !c)
        return 1;
    for (int k = 0; k < 3; k++)
        b->at[k] = b->v[k] = k + 1;
    b->id = 3;
    c->at[1] = 9;
    printf("%g %g %g %g %d\\n", b->at[0], b->at[2] + c->at[0], b->v[1], c->at[1], b->id);
    free(b);
    free(c);
    return 0;
}
"""
    )
    new = changed({"app.c": program}, "body", [["at"]], tmp_path, apart=("at",), pooled=True)
    assert output(new, SANITIZED) == output(tmp_path / "old", SANITIZED)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("double *p = b->at; return p != NULL;", "member at as a whole, whose parts are apart"),
        ("return norm(b->at) > 0;", "member at as a whole, whose parts are apart"),
        ("memcpy(b->at, b[1].at, sizeof b->at); return 0;", "member at as a whole, whose parts are apart"),
        ("return norm(&b->at[0]) > 0;", "the address of a part of a member goes where it cannot be followed"),
        ("double (*p)[3] = &b->at; return p != NULL;", "member at as a whole, whose parts are apart"),
    ],
)
def test_what_needs_the_parts_side_by_side_is_refused(line: str, why: str, tmp_path: Path) -> None:
    source = f"{HEAD}double norm(const double *v);\nint f(struct body *b);\nint f(struct body *b) {{ {line} }}\n"
    done = rewritten({"app.c": source}, "body", [["at"]], tmp_path, apart=("at",))
    assert {(refusal.line, refusal.why) for refusal in done.refusals} == {(source.count("\n"), why)}


def test_what_cannot_be_taken_apart(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(HEAD)
    record = next(node for node in parse(tmp_path / "a.c", (), tmp_path).declarations if node.name == "body")
    for groups, apart, why in [
        ([["id"]], ("id",), "member id is no array of numbers"),
        ([["m"]], ("m",), "member m is no array of numbers"),
        ([["at", "v"]], ("at",), "beside others"),
    ]:
        with pytest.raises(SourceError, match=why):
            target(record, groups, "", apart=apart)


CXX = """#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>
struct Body {
    double at[3];
    float v[2];
    int id;
    double length() const
    {
        double sum = 0;
        for (int k = 0; k < 3; k++)
            sum += at[k] * at[k];
        return sum;
    }
    void move(double by) { at[id % 3] += by; }
};
static double far(const Body &b) { return b.at[2] - b.v[0]; }
int main()
{
    std::vector<Body> all(5);
    Body one = {{1, 2, 3}, {4, 5}, 6};
    for (int i = 0; i < 9; i++) {
        one.at[1] = i % 4;
        all.push_back(one);
    }
    all[2] = all[7];
    std::swap(all[1], all[9]);
    std::sort(all.begin(), all.end(), [](const Body &a, const Body &b) { return a.at[1] + a.at[0] < b.at[1] + b.at[0]; });
    for (Body &b : all) {
        b.move(0.5);
        double *own = &b.at[2];
        *own += b.v[1];
    }
    const Body copy = all[3];
    Body *some = new Body[3]();
    some[1].at[2] = copy.at[1] + far(all[4]);
    double sum = some[1].at[2] + sizeof(all[0].at) + sizeof(some->at) / sizeof(some->at[0]);
    for (const Body &b : all)
        sum = sum * 1.25 + b.length() + b.at[0] + b.v[1] + b.id;
    std::printf("%.17g\\n", sum);
    delete[] some;
    return 0;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
@pytest.mark.parametrize(("groups", "apart"), [([["at"]], ("at",)), ([["v"], ["at"]], ("at", "v"))])
def test_cxx_prints_the_same(groups: Groups, apart: tuple[str, ...], compiler: str, tmp_path: Path) -> None:
    own = CXX_SANITIZED if compiler == "gcc" else CXX_WARNINGS
    new = changed({"app.cpp": CXX}, "Body", groups, tmp_path, apart=apart)
    assert "Body_parts<part_<double>> at;" in (new / "app.cpp").read_text()
    assert output(new, own, compiler) == output(tmp_path / "old", own, compiler)


def test_in_cxx_an_address_that_goes_further_is_refused(tmp_path: Path) -> None:
    head = "struct Body { double at[3]; int id; };\ndouble norm(const double *v);\n"
    source = f"{head}double f(const Body *b) {{ return norm(&b->at[0]); }}\n"
    done = rewritten({"app.cpp": source}, "Body", [["at"]], tmp_path, apart=("at",))
    assert [(one.line, one.why) for one in done.refusals] == [
        (3, "the address of a part of a member goes where it cannot be followed")
    ]


def test_in_cxx_a_member_as_a_whole_does_not_compile(tmp_path: Path) -> None:
    head = "struct Body { double at[3]; int id; };\ndouble norm(const double *v);\n"
    for use in ("norm(b->at)", "*b->at", "b->at[0] + *(b->at + 1)"):
        source = f"{head}double f(const Body *b);\ndouble f(const Body *b) {{ return {use}; }}\n"
        new = changed({"app.cpp": source}, "Body", [["at"]], tmp_path / str(len(use)), apart=("at",))
        done = subprocess.run(["g++", "-std=c++11", "-fsyntax-only", new / "app.cpp"], capture_output=True, check=False)
        assert done.returncode == 1, use
