"""Methods of a rewritten C++ record, wherever they are defined; destructors; classes that derive from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import slower
from tests.support.applying.rewritten import CXX_SANITIZED, CXX_WARNINGS, Groups, changed, output, rewritten
from tests.support.compilers import needs_clang

FILES = {
    "body.hpp": """#ifndef BODY
#define BODY
#include <vector>
namespace sim {
class Body {
public:
    enum Kind { dust, star };
    typedef double length;
    explicit Body(length x, const Body *like = nullptr);
    ~Body() {}
    length distance(const Body &other) const;
    Body &move(double dt = 0.5);
    Kind kind() const;
    static int made() { return count; }
    bool is(const Body *other) const { return this == other; }
    Body *self();
    void meet(Body &other);
    double x() const { return scaled(1.0); }

private:
    length scaled(double by) const { return by * px; }
    double px, vx = 1.0;
    char name[8] = "body";
    static int count;
};
inline Body *Body::self() { return this; }
double total(const std::vector<Body> &all);
}
#endif
""",
    "body.cpp": """#include "body.hpp"
#include <cmath>
namespace sim {
int Body::count = 0;
static const double limit = 3.0;
Body::Body(length x, const Body *like) : px(x) { count += like ? 2 : 1; }
/* how far it is */
Body::length Body::distance(const Body &other) const
{
    return std::fabs(px - other.px) + (is(&other) ? 100.0 : 0.0) + count * 0.0;
}
sim::Body &sim::Body::move(double dt)
{
    px += dt * vx;
    name[0]++;
    return *this;
}
double total(const std::vector<Body> &all)
{
    double sum = 0;
    for (const Body &b : all)
        sum += b.distance(all[0]);
    return sum;
}
}
sim::Body::Kind sim::Body::kind() const { return px > sim::limit ? star : Kind::dust; }
void sim::Body::meet(Body &other)
{
    other.px += made();
    if (other.kind() == star)
        this->move().move(0.25);
}
""",
    "main.cpp": """#include <cstdio>
#include "body.hpp"
int main()
{
    std::vector<sim::Body> all;
    for (int i = 0; i < 10; i++)
        all.push_back(sim::Body(i));
    sim::Body single(2.5);
    single.move();
    for (auto &b : all)
        b.move(0.25).move();
    all[1].meet(all[2]);
    all[3].meet(all[9]);
    const sim::Body &last = all.back();
    const sim::Body *p = all[4].self();
    std::printf("%g %g %d %d %g\\n", sim::total(all), last.distance(all[1]), last.kind(), sim::Body::made(), single.x());
    std::printf("%d %d %g\\n", p->is(&all[4]), p->is(&all[5]), all[3].x());
}
""",
}
LAYOUTS: list[tuple[Groups | None, tuple[int, ...]]] = [(None, ()), ([["px", "vx"]], ()), ([["px", "vx", "name"]], (4,))]


@pytest.mark.parametrize(("groups", "blocks"), [*slower(LAYOUTS[0], LAYOUTS[1]), LAYOUTS[2]])
def test_methods_outside_of_the_class(groups: Groups | None, blocks: tuple[int, ...], tmp_path: Path) -> None:
    new = changed(FILES, "Body", groups, tmp_path, blocks=blocks)
    assert output(new) == output(tmp_path / "old")
    text = (new / "body.cpp").read_text()
    assert "template <bool constant> sim::Body_ref sim::Body_refs<constant>::move(double dt)" in text
    assert "\ntemplate Body::length Body_refs<true>::distance(Body_cref other) const;" in text


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "blocks"), LAYOUTS)
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
def test_methods_by_compiler_and_sanitizer(
    groups: Groups | None, blocks: tuple[int, ...], compiler: str, tmp_path: Path
) -> None:
    new = changed(FILES, "Body", groups, tmp_path, blocks=blocks)
    sanitized = [CXX_SANITIZED] if compiler == "gcc" else []  # clang's runtime is a package of its own
    for flags in (CXX_WARNINGS, (*CXX_WARNINGS, "-std=c++20", "-O2"), *sanitized):
        assert output(new, flags, compiler) == output(tmp_path / "old", flags, compiler)


DESTROYED = """#include <cstdio>
#include <vector>
static int gone = 0;
struct P {
    double x;
    int n;
    %s
};
%s
int main()
{
    std::vector<P> v(4);
    for (P &p : v)
        p.x = p.n = 2;
    v.pop_back();
    P *p = new P[2];
    p[1] = v[2];
    std::printf("%%g %%d\\n", v[0].x + p[1].n, gone);
    delete[] p;
}
"""


@pytest.mark.parametrize(
    ("declared", "defined"),
    [
        ("~P() = default;", ""),
        *slower(("~P() { /* nothing */ }", "")),
        ("~P();", "P::~P() {}"),
        *slower(("~P() noexcept;", "P::~P() noexcept {}")),
    ],
)
def test_destructors_that_do_nothing(declared: str, defined: str, tmp_path: Path) -> None:
    new = changed({"p.cpp": DESTROYED % (declared, defined)}, "P", None, tmp_path)
    assert output(new, CXX_SANITIZED) == output(tmp_path / "old", CXX_SANITIZED) == "4 0\n"


@pytest.mark.parametrize(
    ("declared", "defined", "why"),
    [
        ("~P() { gone++; }", "", "P has a destructor that may do something"),
        ("~P();", "P::~P() { gone++; }", "P has a destructor that may do something"),
        ("~P(); /* elsewhere */", "", "P has a destructor that may do something"),
        ("virtual ~P() {}", "", "P has virtual methods"),
        ("template <class T> T as() const { return T(x); }", "", "P has templates of its own"),
        ("void *self() { return this; }", "void *kept = v0.self();", "a pointer to an element becomes void *"),
    ],
)
def test_members_that_are_refused(declared: str, defined: str, why: str, tmp_path: Path) -> None:
    done = rewritten({"p.cpp": DESTROYED % (declared, defined.replace("v0", "P()"))}, "P", None, tmp_path)
    assert any(why in refusal.why and refusal.line >= 7 for refusal in done.refusals), done.refusals
    assert not done.texts


def test_classes_that_derive_from_the_record(tmp_path: Path) -> None:
    text = """#include <cstdio>
#include <vector>
struct P {
    double x = 1;
    char c = 'c';
    int n = 0;
    double twice() const { return 2 * x; }
    void add(const P &o) { x += o.x; n++; }
};
struct Q : public P {
    int more = 3;
    double all() const { return twice() + more + n; }
};
static void grow(P &p, double by) { p.x *= by; }
int main()
{
    std::vector<P> ps(3);
    std::vector<Q> qs(2);
    grow(ps[1], 3.0);
    grow(qs[1], 5.0);
    ps[2].add(qs[1]);
    qs[0].add(ps[2]);
    ps.push_back(qs[0]);
    P &of = qs[1];
    of.n = 7;
    P sliced = qs[1];
    std::printf("%g %g %g %g %d %zu\\n", qs[0].all(), qs[1].all(), ps[3].x, sliced.x, ps[3].n, sizeof(Q));
}
"""
    new = changed({"p.cpp": text}, "P", None, tmp_path)
    assert output(new, CXX_SANITIZED) == output(tmp_path / "old", CXX_SANITIZED)


DERIVED = """#include <cstdio>
#include <vector>
struct P {
    double x = 1, y = 2;
    static int made;
    double far() const { return x * x + y * y + made; }
    void add(double by);
    int kind() const { return 1; }
};
int P::made = 3;
class Q : public P {
public:
    Q() = default;
    explicit Q(int n) : n(n) { x = n; }
    int kind() const { return 2 * n; }
    double all() const { return far() + n + kind(); }

private:
    int n = 0;
    char name[4] = "abc";
};
struct R : Q {
    float last = 0.5f;
};
void P::add(double by) { x += by; }
int main()
{
    std::vector<R> v(5);
    for (R &r : v) {
        r.add(2.5);
        r.y = r.last * 2;
    }
    v[1].x = 7;
    v[2] = v[1];
    R single = v[2];
    R *p = &v[4];
    single.add(1);
    p->last += 1;
    v.push_back(single);
    std::printf("%g %g %d %g %g\\n", v[1].all(), v[5].far(), v[3].kind(), single.all(), v[4].last);
}
"""


def test_classes_with_a_base(tmp_path: Path) -> None:
    new = changed({"p.cpp": DERIVED}, "R", None, tmp_path)
    assert output(new, CXX_SANITIZED) == output(tmp_path / "old", CXX_SANITIZED)
    assert "R_refs<constant>::add(double by)" in (new / "p.cpp").read_text()


@pytest.mark.parametrize(
    ("change", "groups", "why"),
    [
        ("struct R : virtual Q", None, "R has a virtual base class"),
        ("struct S { int s; };\nstruct R : Q, S", None, "R has several base classes, or one that was not read"),
        ("struct R : std::vector<int>", None, "R has several base classes, or one that was not read"),
        ("struct R : Q", [["last", "x"]], "members of a base class, where the members get another order"),
    ],
)
def test_bases_that_are_refused(change: str, groups: Groups | None, why: str, tmp_path: Path) -> None:
    record = (
        DERIVED.partition("void P::add")[0]
        .replace("struct R : Q", change)
        .replace("float last", "int more;\n    float last")
    )
    text = f"{record}R all[3];\n"
    done = rewritten({"p.cpp": text}, "R", groups, tmp_path)
    assert any(why in refusal.why for refusal in done.refusals), done.refusals
    assert not done.texts


def test_members_behind_the_padding_of_a_base(tmp_path: Path) -> None:
    """Not where their type alone would put them: a record by itself would be no array of one."""
    text = "struct P { double x; char c; };\nstruct Q : P { char d; };\nQ all[3];\nint main() { return all[1].d; }\n"
    done = rewritten({"p.cpp": text}, "Q", None, tmp_path)
    assert any("member d lies elsewhere than its type would put it" in refusal.why for refusal in done.refusals)


BUILT = """#include <cstdio>
#include <vector>
struct Item {
    char kind;
    double at[2];
    int number;
    Item(int n, double x) : kind('a'), at{x, (x + 1) * 2}, number(n) {}
    explicit Item(int n);
    Item() : at(), number() { kind = 'b'; }
};
Item::Item(int n) : kind('x'), number(n) { at[0] = at[1] = n; }
int main()
{
    std::vector<Item> all;
    for (int k = 0; k < 5; k++)
        all.push_back(k % 2 ? Item(k) : Item(k, 0.5 * k));
    all.push_back(Item());
    for (const Item &one : all)
        std::printf("%c %g %g %d\\n", one.kind, one.at[0], one.at[1], one.number);
    return 0;
}
"""


def test_initialisers_come_in_the_members_new_order(tmp_path: Path) -> None:
    """Else gcc warns, once per constructor."""
    new = changed({"app.cpp": BUILT}, "Item", [["number", "kind"], ["at"]], tmp_path)
    made = (new / "app.cpp").read_text()
    assert "at{x, (x + 1) * 2}, kind('a'), number(n) {}" in made
    assert output(new, CXX_SANITIZED) == output(tmp_path / "old", CXX_SANITIZED)


@pytest.mark.parametrize("reading", ["number(n), at{1.0 * number, 2}", "at{x, x}, number(int(at[0]))"])
def test_initialisers_that_read_members_are_refused(reading: str, tmp_path: Path) -> None:
    text = BUILT.replace("at{x, (x + 1) * 2}, number(n)", reading)
    done = rewritten({"app.cpp": text}, "Item", [["number", "kind"], ["at"]], tmp_path)
    assert {refusal.line for refusal in done.refusals} == {7}
    assert all("the order in which members are initialised changes" in refusal.why for refusal in done.refusals)
