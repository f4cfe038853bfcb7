"""What a view would break is refused by file and line, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.errors import SourceError
from tests.support.viewed.programs import FLAGS, program, with_views

ON = "[[clang::soa_conversion]] "
FAR = "[[clang::soa_conversion_offload_compute]] "
OVER_A = '[[clang::soa_conversion_target("a")]] '
OVER_Q = '[[clang::soa_conversion_target("q")]] '
OVER_S = '[[clang::soa_conversion_target("s")]] '
REFUSED = {
    "no annotated loop": ("", ";"),
    "before no loop": ("", f"{ON} dt = 1; {ON} for (auto &p : a) p.x = 1;"),
    "is a copy of an element": ("", f"{ON} for (auto p : a) p.x = 1;"),
    "unseen": ("void unseen(P &p);", f"{ON} for (auto &p : a) unseen(p);"),
    "only a range-based loop can be offloaded": ("", f"{FAR}{OVER_A} for (int i = 0; i < 3; ++i) a[i].x = 1;"),
    "is left early": ("", f"{FAR}{ON} for (auto &p : a) {{ if (p.x > 3) break; p.x = 1; }}"),
    "z changes in the loop": ("", f"double z = 0; {FAR}{ON} for (auto &p : a) z += p.x; b[0].x = z;"),
    "out is of outside the loop and no number": (
        "", f"std::vector<double> out(999); {FAR}{ON} for (auto &p : a) p.x = out[3];",
    ),
    "some is of outside the function": (
        "double some = 3; static double more() { return some; }", f"{FAR}{ON} for (auto &p : a) p.x = more();",
    ),
    "next leads to memory": ("", f"{FAR}{ON} for (auto &p : a) p.next = nullptr;"),
    "compared by their addresses": (
        "",
        f"{FAR}{ON} for (auto &p : a) {{ {ON} [[clang::soa_conversion_hoist(1)]]\n"
        "for (auto &q : b) p.x += &p == &q ? q.y : 0; }",
    ),
    "known at run time": ("struct V { virtual void f(P &p) { p.x = 1; } };", f"V v; {ON} for (auto &p : a) v.f(p);"),
    "given to operator=": ("", f"{ON} for (auto &p : a) p = b[0];"),
    "used as a whole": ("", f"{ON} for (auto &p : a) {{ auto *q = &b[0]; q = &p; q->x = 1; }}"),
    "given to push_back": ("", f"{ON} for (auto &p : a) {{ p.x = 1; b.push_back(b[0]); }}"),
    "address of a member": ("", f"{ON} for (auto &p : a) {{ double *q = &p.x; *q = 1; }}"),
    "address of a member's array": ("", f"{ON} for (auto &p : a) {{ double *q = p.v; *q = 1; }}"),
    "may change a": ("", f"{ON} for (auto &p : a) {{ p.x = 1; a.resize(3); }}"),
    "captures by copy": ("", f"{ON} for (auto &p : a) {{ auto f = [=] {{ return p.x; }}; p.y = f(); }}"),
    "returns a reference": ("", f"{ON} for (auto &p : a) {{ auto f = [&]() -> double & {{ return p.x; }}; f() = 1; }}"),
    "decltype in it": ("", f"{ON} for (auto &p : a) {{ decltype(p.x) z = p.x; z = 2; p.y = z; }}"),
    "not through it": ("", f"{ON} for (auto &p : a) {{ p.x = a[3].x; }}"),
    "macro makes the access": ("#define X(p) (p).x", f"{ON} for (auto &p : a) X(p) = 1;"),
    "no 1 loops around": ("", f"[[clang::soa_conversion_hoist(1)]] {ON} for (auto &p : a) p.x = 1;"),
    "soa_conversion_hoisted is not known": ("", f"[[clang::soa_conversion_hoisted]] {ON} for (auto &p : a) p.x = 1;"),
    "declared in a loop": (
        "", f"for (auto &p : a) {{ auto &c = b; [[clang::soa_conversion_hoist(1)]] {ON}\n for (auto &q : c) q.x = 1; }}",
    ),
    "say what is converted": ("", f"{ON} for (int i = 0; i < 3; ++i) a[i].x = 1;"),
    "how many elements": ("", f"P *q = &a[0]; {OVER_Q} for (int i = 0; i < 3; ++i) q[i + 1].x = 1;"),
    "n changes in a loop": (
        "", f"P *q = &a[0]; int n = 9; {OVER_Q} for (int i = 0; i < n; ++i) {{ q[i].x = 1; --n; }}",
    ),
    "through the view of s": (  # the outer view writes what the inner one reads
        "", f"{ON} for (auto &p : a) {{ p.x = 0; {OVER_S} for (std::size_t i = 0; i < s.size(); ++i) p.rho += s[i]->x; }}",
    ),
    "x is converted for a": (  # the inner view writes what the outer one reads
        "", f"{ON} for (auto &p : a) {{ {OVER_S} for (std::size_t i = 0; i < s.size(); ++i) s[i]->x += p.x; }}",
    ),
    "would outlive it": (
        f"double d; double &first(std::vector<P> &c) {{ {ON} for (auto &p : c) return p.x; return d; }}", "first(a);",
    ),
    "defined behind the loop": (
        f"static void late(P &p); void early(std::vector<P> &c) {{ {ON} for (auto &p : c) late(p); }}\n"
        "static void late(P &p) { p.x = 1; }", "early(a);",
    ),
    "structures of a known type": ("template <class T> void any(T &c) { " + ON + "for (auto &p : c) p.x = 1; }", "any(a);"),
    "would not compile": ("#include <list>\nstd::list<P> l;", f"{ON} for (auto &p : l) p.x = 1;"),
}  # fmt: skip
QUICK = (
    "no annotated loop", "before no loop", "only a range-based loop can be offloaded", "is left early",
    "z changes in the loop", "some is of outside the function", "given to push_back", "address of a member", "may change a",
    "captures by copy", "not through it", "macro makes the access", "no 1 loops around", "through the view of s",
    "defined behind the loop",
)  # fmt: skip


@pytest.mark.parametrize("why", [pytest.param(one, marks=[] if one in QUICK else pytest.mark.slow) for one in REFUSED])
def test_is_refused(why: str, tmp_path: Path) -> None:
    before, body = REFUSED[why]
    with pytest.raises(SourceError, match=r"program\.cpp") as caught:
        with_views(program(body, before), tmp_path)
    assert why in caught.value.line()


def test_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "some.cpp"
    path.write_text(program(f"{ON} for (auto &p : a) p = b[0];"))
    assert main(["views", str(path), "-o", str(tmp_path / "new.cpp"), "--", *FLAGS]) == 1
    assert f"{path}:" in capsys.readouterr().err
    assert sorted(found.name for found in tmp_path.iterdir()) == ["some.cpp"]
    assert main(["views", str(path), "-o", str(path)]) == 2
    (tmp_path / "some.c").write_text("int x;")
    assert main(["views", str(tmp_path / "some.c")]) == 2
    assert main(["views", str(tmp_path / "none.cpp")]) == 2


def test_the_command_writes_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, new = tmp_path / "some.cpp", tmp_path / "new.cpp"
    path.write_text(program(f"{ON} for (auto &p : a) p.x += p.y;"))
    assert main(["views", str(path), "-o", str(new), "--", *FLAGS]) == 0
    assert "a: in y, x; back x" in capsys.readouterr().err
    assert main(["views", str(path), "--", *FLAGS]) == 0
    assert capsys.readouterr().out == new.read_text()
