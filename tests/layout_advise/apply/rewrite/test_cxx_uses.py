"""C++ whose uses are known is rewritten so that the program prints the same; what would mean something else is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import slower
from tests.support.applying.rewritten import CXX_SANITIZED, CXX_WARNINGS, Groups, changed, output, rewritten
from tests.support.compilers import needs_clang

PROGRAM = """#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace sim {
/* one body */
struct Particle {
    double x, y;
    float m = 1.0f;
    int c[3];
    double vx = 0.5, vy = 0.25;
    double r2() const { return x * x + y * y; }
    void move(double dt) { x += dt * vx; y += dt * vy; }
    Particle &scale(double s) { x *= s; return *this; }
    bool operator<(const Particle &o) const { return x < o.x; }
};

class World {
public:
    std::vector<Particle> all;
    Particle *first() { return all.empty() ? nullptr : &all[0]; }
    const Particle &last() const { return all.back(); }
    void step(double dt)
    {
        for (Particle &p : all)
            p.move(dt);
        for (auto &p : all)
            p.c[1]++;
        for (const auto &p : all)
            total += p.r2();
        for (auto p : all) {
            p.x = 7;
            total += p.x;
        }
    }
    double total = 0;
};
}
using sim::Particle;

static double energy(const std::vector<Particle> &ps)
{
    double e = 0;
    for (std::size_t i = 0; i < ps.size(); i++) {
        const Particle &p = ps[i];
        e += p.m * (p.vx * p.vx + p.vy * p.vy);
    }
    return e;
}

static void kick(Particle &p, double f) { p.vx += f; }
static void all(Particle *p, int n)
{
    for (Particle *q = p; q != p + n; ++q)
        q->vy *= 0.5;
    p[1] = p[0];
}
static Particle made(double x) { Particle p{}; p.x = x; return p; }
static bool later(const Particle &a, const Particle &b) { return a.x > b.x; }

int main()
{
    sim::World w;
    for (int i = 0; i < 100; i++)
        w.all.push_back(made(i * 37 % 101));
    w.all.emplace_back();
    w.all.resize(120);
    std::sort(w.all.begin(), w.all.end());
    std::printf("%g %g\\n", w.all[3].x, w.all.back().x);
    std::sort(w.all.begin(), w.all.end(), later);
    std::sort(w.all.begin(), w.all.end(), [](const Particle &a, const Particle &b) { return a.x < b.x; });
    for (int k = 0; k < 3; k++)
        w.step(0.1);
    kick(w.all[2], 3.0);
    Particle single = w.all[2];
    kick(single, 1.0);
    Particle *ptr = &single;
    ptr->x += 1;
    all(w.all.data(), (int)w.all.size());
    std::vector<Particle> copy = w.all;
    copy.erase(copy.begin() + 1);
    copy.insert(copy.begin(), single);
    std::swap(copy[0], copy[5]);
    Particle *raw = new Particle[10];
    raw[3].x = 3;
    raw[3].scale(2.0);
    Particle *zero = (Particle *)std::malloc(5 * sizeof(Particle));
    zero[1] = raw[3];
    double s = std::accumulate(copy.begin(), copy.end(), 0.0, [](double a, const Particle &p) { return a + p.x; });
    if (Particle *f = w.first())
        s += f->y;
    Particle table[4];
    for (auto &t : table)
        t.vx = 9;
    s += table[2].vx;
    s += std::count_if(w.all.begin(), w.all.end(), [&](const Particle &p) { return p.x > s; });
    auto best = std::max_element(w.all.begin(), w.all.end());
    auto at = best - w.all.begin();
    std::printf("%.12g %.12g %.12g %g %g\\n", energy(w.all), w.total, s, single.x, zero[1].x);
    std::printf("%ld %g %d\\n", (long)at, w.last().x, w.all[2].c[1]);
    delete[] raw;
    std::free(zero);
}
"""
LAYOUTS: list[Groups | None] = [None, [["x", "y"], ["vx", "vy"]], [["c", "m"]]]


@pytest.mark.parametrize("groups", [*slower((LAYOUTS[0],)), LAYOUTS[1], *slower((LAYOUTS[2],))])
def test_all_known_uses(groups: Groups | None, tmp_path: Path) -> None:
    new = changed({"p.cpp": PROGRAM}, "Particle", groups, tmp_path, guard=True)
    assert output(new) == output(tmp_path / "old")
    kept = "std::sort(w.all.begin(), w.all.end(), later);"
    text = (new / "p.cpp").read_text()
    assert kept in text
    assert "static double energy(const sim::Particle_vector &ps)" in text


BLOCKS: list[tuple[Groups, tuple[int, ...]]] = [
    ([["x", "y"], ["vx", "m", "c"]], (4,)),
    ([["x", "y"], ["vx", "m", "c"]], (0, 3)),
    ([["c", "m", "x", "y", "vx", "vy"]], (8,)),
]


@pytest.mark.parametrize(("groups", "blocks"), [*slower(BLOCKS[0]), BLOCKS[1]])
def test_all_known_uses_in_blocks(groups: Groups, blocks: tuple[int, ...], tmp_path: Path) -> None:
    new = changed({"p.cpp": PROGRAM}, "Particle", groups, tmp_path, guard=True, blocks=blocks)
    assert output(new) == output(tmp_path / "old")


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "blocks"), BLOCKS)
def test_blocks_are_clean_under_sanitizers(groups: Groups, blocks: tuple[int, ...], tmp_path: Path) -> None:
    """Also of the last block, which is shorter, and of vectors that grow."""
    new = changed({"p.cpp": PROGRAM}, "Particle", groups, tmp_path, blocks=blocks)
    assert output(new, CXX_SANITIZED) == output(tmp_path / "old", CXX_SANITIZED)


@pytest.mark.slow
@pytest.mark.parametrize("groups", LAYOUTS)
@pytest.mark.parametrize("standard", ["-std=c++11", "-std=c++17", "-std=c++20"])
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
def test_by_standard_compiler_and_sanitizer(groups: Groups | None, standard: str, compiler: str, tmp_path: Path) -> None:
    new = changed({"p.cpp": PROGRAM}, "Particle", groups, tmp_path)
    sanitized = [CXX_SANITIZED] if compiler == "gcc" else []  # clang's runtime is a package of its own
    for flags in (CXX_WARNINGS, *sanitized):
        assert output(new, (*flags, standard), compiler) == output(tmp_path / "old", (*flags, standard), compiler)


def test_a_record_in_a_block_of_c_and_memory_by_a_macro(tmp_path: Path) -> None:
    """As in headers for both languages: templates have C++ linkage, and the macro is expanded."""
    files = {
        "item.h": '#ifdef __cplusplus\nextern "C" {\n#endif\n'
        "struct other { int k; };\n"
        "struct item { double x; int n; struct other **others; };\n"
        "double sum(const struct item *p, int n);\n#ifdef __cplusplus\n}\n#endif\n",
        "p.cpp": """#include "item.h"
#include <cstdio>
#include <cstdlib>
#define Malloc(type,n) (type *)malloc((n)*sizeof(type))
double sum(const item *p, int n)
{
    double all = 0;
    for (int i = 0; i < n; i++)
        all += p[i].x * p[i].n;
    return all;
}
int main()
{
    item *p = Malloc(item,5), *q = p, **r = &q;
    for (int i = 0; i < 5; i++) {
        p[i].x = i * 0.5;
        p[i].n = i;
        p[i].others = (other **)malloc(sizeof(other *));
        free(p[i].others);
    }
    std::printf("%g\\n", sum(*r, 5));
    free(p);
}
""",
    }
    new = changed(files, "item", None, tmp_path)
    assert output(new) == output(tmp_path / "old") == "15\n"


HEAD = """extern "C" {
#include <unistd.h>
}
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>
struct P { double x, y; int c[2]; double sum() const { return x + y; } double far() const; };
template <class T> void generic(T t) { t.x = 1; }
inline P made() { return P(); }
"""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("std::vector<P> v(3); const auto &p = *std::max_element(v.begin(), v.end(), [](const P &a, const P &b) "
         "{ return a.x < b.x; }); auto f = [p] { return p.x; }; return f() > 0;", "a lambda captures a copy of p"),
        *slower(("std::vector<P> v(3); P &p = v[0]; auto f = [=] { return p.x; }; return f() > 0;",
                 "a lambda captures a copy of p")),
        ("std::vector<P> v(3); generic(v[0]); return 0;", "template generic is given elements"),
        *slower(("std::vector<P> v(3); std::memset(v.data(), 0, 3 * sizeof(P)); return 0;", "memset is given elements")),
        *slower(("std::vector<P> v(3); return std::max(v[0], v[1], [](const P &a, const P &b) { return a.x < b.x; }).x > 0;",
         "max is given elements")),
        ("std::array<P, 3> v{}; return v[0].x > 0;", "a template other than std::vector holds P"),
        *slower(("std::unique_ptr<P[]> v(new P[3]); return v[0].x > 0;", "a template other than std::vector holds P")),
        ("std::vector<P> v(3); double *p = &v[0].x; return p[1] > 0;", "the address of member x goes where"),
        ("std::vector<P> v(3); char *p = reinterpret_cast<char *>(&v[0]); return p[0];", "a pointer to an element becomes"),
        ("P *p = new P; void *q = p; return q != nullptr;", "a pointer to an element becomes void *"),
        ("std::vector<P> v(3); return v[0].far() > 0;", "no source that was read defines method far of P"),
        ("std::vector<P> v(3); std::for_each(v.begin(), v.end(), [](auto p) { p.x = 1; }); return 0;",
         "of a lambda is auto"),
        ("P &&p = made(); return p.x > 0;", "an rvalue reference to P"),
        *slower(("P *p = static_cast<P *>(std::malloc(100)), q = *p; return q.x > 0;",
                 "q is declared together with others")),
        ("P table[2] = {P(), P()}; return table[1].x > 0;", "is an array of a form that is not known"),
        *slower(("std::vector<P> v(3); v.insert(v.end(), 2, P()); v.get_allocator(); return 0;",
                 "get_allocator is given elements")),
    ],
)  # fmt: skip
def test_what_is_refused(body: str, why: str, tmp_path: Path) -> None:
    standard = "-std=c++14" if "auto p)" in body else "-std=c++11"
    done = rewritten({"p.cpp": f"{HEAD}int main() {{ {body} }}\n"}, "P", None, tmp_path, standard=standard)
    assert any(why in refusal.why for refusal in done.refusals), done.refusals
    assert not done.texts


def test_a_copy_stays_a_copy_and_a_temporary_one_stays_alive(tmp_path: Path) -> None:
    body = """
    std::vector<P> v(3);
    auto copy = v[0];
    copy.x = 5;
    const P &assigned = v[1] = v[0];
    const P &kept = made();
    const auto &other = made();
    auto &&third = made();
    for (auto p : v) {
        p.x = 7;
        copy.y += p.x;
    }
    for (auto &&p : v)
        p.y += 2;
    P single = v[1], *where = nullptr;
    where = &single;
    where->x += kept.x + other.y + third.x + 1;
    std::printf("%g %g %g %g %d\\n", v[0].x + assigned.x, v[2].y, copy.x, single.x, where == &single);
    """.replace("P single = v[1], *where", "P single = v[1]; P *where")
    new = changed({"p.cpp": f"{HEAD}int main() {{ {body} }}\n"}, "P", None, tmp_path)
    assert output(new, CXX_SANITIZED) == output(tmp_path / "old") == "0 2 5 1 1\n"


def test_sizes_are_those_of_the_record(tmp_path: Path) -> None:
    body = """
    P *p = static_cast<P *>(std::malloc(3 * sizeof *p));
    P table[5];
    std::printf("%zu %zu %zu", sizeof p[0], sizeof(table) / sizeof(table[0]), sizeof p->c + alignof(P));
    std::free(p);
    """
    new = changed({"p.cpp": f"{HEAD}int main() {{ {body} }}\n"}, "P", None, tmp_path)
    assert output(new, CXX_SANITIZED) == output(tmp_path / "old") == "24 5 16"


def test_a_class_over_several_files(tmp_path: Path) -> None:
    files = {
        "body.hpp": """#ifndef BODY
#define BODY
#include <vector>
class Body {
public:
    explicit Body(double x);
    double x() const { return px; }
    void step(double dt) { px += dt * vx; }
    static int made;

private:
    double px, vx;
    char name[8];
};
void advance(std::vector<Body> &all, double dt);
Body *oldest(std::vector<Body> &all);
#endif
""",
        "body.cpp": """#include "body.hpp"
int Body::made = 0;
Body::Body(double x) : px(x), vx(1.0), name{} { made++; }
void advance(std::vector<Body> &all, double dt)
{
    for (std::vector<Body>::iterator b = all.begin(); b != all.end(); ++b)
        b->step(dt);
}
Body *oldest(std::vector<Body> &all) { return all.empty() ? nullptr : &all.front(); }
""",
        "main.cpp": """#include <cstdio>
#include "body.hpp"
int main()
{
    std::vector<Body> all;
    for (int i = 0; i < 10; i++)
        all.push_back(Body(i));
    advance(all, 0.5);
    if (const Body *b = oldest(all))
        std::printf("%g %g %d\\n", b->x(), all[9].x(), Body::made);
}
""",
    }
    new = changed(files, "Body", None, tmp_path)
    assert output(new, CXX_SANITIZED) == output(tmp_path / "old") == "0.5 9.5 10\n"


def test_templates_that_are_given_pointers_and_what_only_gcc_takes(tmp_path: Path) -> None:
    """libsvm exchanges pointers to its rows by a template of its own; minisat has literals without a blank behind them."""
    text = r"""
#include <cinttypes>
#include <cstdio>
#include <cstring>
struct P { double x; int64_t n; };
template <class T> static void exchange(T &a, T &b) { T t = a; a = b; b = t; }
template <class T> static T least(T a, T b, bool first) { return first ? a : b; }
template <class S, class T> static void clone(T *&to, S *from, int n)
{
    to = new T[n];
    std::memcpy((void *)to, (void *)from, sizeof(T) * n);
}
int main()
{
    P *rows = new P[4];
    for (int k = 0; k < 4; k++) { rows[k].x = 0.5 * k; rows[k].n = k; }
    P *a = &rows[0];
    P *b = &rows[3];
    exchange(a, b);
    int one = 1;
    int64_t sizes[] = {one, 2};
    P **all = new P *[2], **others;
    all[0] = a;
    all[1] = b;
    clone(others, all, 2);
    std::printf("%g %"PRId64" %"PRId64"\n", a->x, b->n + sizes[1], least(a, others[1], one == 1)->n);
    delete[] others;
    delete[] all;
    delete[] rows;
    return 0;
}
"""
    new = changed({"app.cpp": text}, "P", [["x"], ["n"]], tmp_path)
    flags = ("-std=c++11", "-O1", "-fpermissive", "-w", "-fsanitize=address,undefined")
    assert output(new, flags) == output(tmp_path / "old", flags)
