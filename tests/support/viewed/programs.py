"""One C++ file with annotated loops: its views, and what both versions leave in memory."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from layout_advise.apply.rewrite.parse import parse
from layout_advise.views.check import check
from layout_advise.views.rewrite import rewrite

COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
HEAD = """
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>
struct P { double x, y, v[3]; float m; double rho; int tag; P *next;
           double r() const { return std::sqrt(x * x + y * y); }
           void scale(double a) { x *= a; set(y * a); }
           void set(double a) { y = a; }
           double far(const P &o) const { return (x - o.x) * (x - o.x) + y * o.y; }
           double &height() { return rho; } };
static void show(const std::vector<P> &a, const std::vector<P> &b)
{
    for (const auto *some : {&a, &b})
        for (const P &p : *some) std::fwrite(&p, 1, sizeof p, stdout);
}
"""
MAIN = """
int main()
{
    std::vector<P> a(257), b(100);
    for (auto *some : {&a, &b}) {
        std::memset(some->data(), 7, some->size() * sizeof(P));
        int k = 0;
        for (P &p : *some) {
            p.x = 0.5 * k; p.y = 3.0 - k; p.v[0] = k; p.v[1] = -k; p.v[2] = 0.25 * k; p.m = 1.5f * k; p.rho = 1e3 / (k + 1);
            p.tag = k % 7; p.next = nullptr; ++k;
        }
    }
    std::vector<P *> s;
    for (std::size_t k = 0; k < a.size(); ++k) s.push_back(&a[(k * 37) % a.size()]);
    for (int k = 0; k < 3; ++k) run(a, b, s, 0.125);
    show(a, b);
}
"""
SIGNATURE = "void run(std::vector<P> &a, std::vector<P> &b, std::vector<P *> &s, double dt)"
FLAGS = ("-std=c++17",)
WARNINGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-unknown-attributes", "-Wno-attributes",
            "-Wno-class-memaccess", "-Wno-unknown-warning-option")  # fmt: skip


def program(body: str, before: str = "") -> str:
    """A whole program around the body of ``run``."""
    return f"{HEAD}{before}\n{SIGNATURE}\n{{\n    (void)a, (void)b, (void)s, (void)dt;\n{body}\n}}\n{MAIN}"


def with_views(
    source: str, folder: Path, *, openmp: bool = False, timed: bool = False
) -> tuple[str, list[tuple[str, str, str]]]:
    """The new source, and ``(container, in, back)`` of each view, members with blanks between."""
    path = folder / "program.cpp"
    path.write_text(source)
    viewed = rewrite(parse(path, FLAGS, folder), openmp=openmp, timed=timed)
    check(viewed.text, path, FLAGS, folder)
    members = [(view.container, " ".join(found.reads), " ".join(found.writes)) for view, found in viewed.views]
    return viewed.text, members


def output(source: str, compiler: str, folder: Path, *flags: str) -> bytes:
    """What a program prints; compiled with warnings as errors."""
    path = folder / "run.cpp"
    path.write_text(source)
    command = [compiler, *FLAGS, *WARNINGS, *flags, str(path), "-o", str(folder / "run")]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return subprocess.run([str(folder / "run")], capture_output=True, check=True, timeout=60).stdout
