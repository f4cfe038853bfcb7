"""Programs with views leave the same bytes as those without, with both compilers."""

from __future__ import annotations

from pathlib import Path

from tests.support.viewed.programs import COMPILERS, output, program, with_views

ANNOTATED = "[[clang::soa_conversion]]"
LOOPS = {
    "range": ("", f"{ANNOTATED}\nfor (auto &p : a) {{ p.x += dt * p.v[0]; p.tag |= 8; }}", ("a", "x v tag", "x tag")),
    "written only": ("", f"{ANNOTATED} for (P &p : a) p.y = p.x;", ("a", "x", "y")),
    "written at times": ("", f"{ANNOTATED} for (P &p : a) if (p.x > 3) p.y = 1;", ("a", "x y", "y")),
    "written up to a break": ("", f"{ANNOTATED} for (P &p : a) {{ if (p.tag == 6) break; p.y = 1; }}", ("a", "tag y", "y")),
    "one of an array": ("", f"{ANNOTATED} for (P &p : a) p.v[1] = p.x;", ("a", "x v", "v")),
    "const": (
        "",
        f"double z = 0; {ANNOTATED} for (const auto &p : a) z += p.x * p.m; b[0].rho = z;",
        ("a", "x m", ""),
    ),
    "scattered": ("", f"{ANNOTATED} for (P *p : s) {{ p->x -= 2; (*p).y += p->x; }}", ("s", "x y", "x y")),
    "methods": ("", f"{ANNOTATED} for (auto &p : a) {{ p.scale(dt); p.rho = p.r(); }}", ("a", "x y", "x y rho")),
    "reference result": ("", f"{ANNOTATED} for (auto &p : a) p.height() = p.x;", ("a", "x rho", "rho")),
    "inner range": ("", f"{ANNOTATED} for (auto &p : a) for (auto &one : p.v) one = dt;", ("a", "v", "v")),
    "bound": ("", f"{ANNOTATED} for (auto &p : a) {{ double &x = p.x; x += 1; }}", ("a", "x", "x")),
    "function": (
        "static void push(P &p, double by) { p.x += by * p.y; }\nstatic void both(P *p) { push(*p, 2); p->rho = p->x; }",
        f"{ANNOTATED} for (auto &p : a) {{ push(p, dt); both(&p); }}",
        ("a", "y x", "x rho"),
    ),
    "lambda": ("", f"{ANNOTATED} for (auto &p : a) {{ auto f = [&](double by) {{ p.x += by; }}; f(2); }}", ("a", "x", "x")),
    "array": (
        "std::array<P, 9> some;",
        f"{ANNOTATED} for (auto &p : some) p.x += 1; a[0].x = some[3].x;",
        ("some", "x", "x"),
    ),
    "C array": ("P c[9];", f"{ANNOTATED} for (auto &p : c) p.x += 1; a[0].x = c[3].x;", ("c", "x", "x")),
    "index": (
        "",
        '[[clang::soa_conversion_target("a")]]\nfor (std::size_t i = 1; i < a.size(); ++i) a[i].x += a[i - 1].y;',
        ("a", "y x", "x"),
    ),
    "pointer": (
        "",
        "P *q = b.data(); const int n = 90;\n"
        '[[clang::soa_conversion_target("q")]]\nfor (int i = 0; i < n; ++i) { P &p = q[i]; p.x *= 2; p.rho = p.x; }',
        ("q", "x rho", "x rho"),
    ),
    "pointer and size": (
        "",
        'P *q = b.data();\n[[clang::soa_conversion_target("q")]] [[clang::soa_conversion_target_size("b.size()")]]\n'
        "for (int i = 3; i < 50; ++i) { const P *p = &q[2 * i - 1]; q[i].x = p->y; }",
        ("q", "y x", "x"),
    ),
    "hoisted": (
        "",
        "for (auto &p : a) {\n"
        "    p.rho = 0;\n"
        '    [[clang::soa_conversion_target("s")]] [[clang::soa_conversion_hoist(1)]]\n'
        "    for (std::size_t i = 0; i < s.size(); ++i) { const P *q = s[i]; p.rho += q->m * (q->x - p.x); }\n}",
        ("s", "m x", ""),
    ),
    "distance": (
        "",
        f"{ANNOTATED}\nfor (auto &p : b) {{\n    double sum = 0;\n    {ANNOTATED} [[clang::soa_conversion_hoist(1)]]\n"
        "    for (const auto &q : a) sum += p.far(q) + (&p == &q ? 1 : 0);\n    p.rho = sum;\n}",
        ("b", "x y", "rho"),
    ),
}


def test_the_same_bytes(tmp_path: Path) -> None:
    before = "\n".join(one for one, _, _ in LOOPS.values())
    source = program("\n".join(f"{{ {body} }} show(a, b);" for _, body, _ in LOOPS.values()), before)
    new, found = with_views(source, tmp_path)
    assert "[[clang" not in new
    views = iter(found)
    for name, (_, body, (container, reads, writes)) in LOOPS.items():
        one, *_ = [next(views) for _ in range(body.count("[[clang::soa_conversion]]") or 1)]
        members = (sorted(one[1].split()), sorted(one[2].split()))
        assert (name, one[0], *members) == (name, container, sorted(reads.split()), sorted(writes.split()))
    for compiler in COMPILERS:
        assert output(new, compiler, tmp_path) == output(source, compiler, tmp_path)
