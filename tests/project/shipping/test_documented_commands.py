"""Every command that the pages and the help texts show is carried out, with the files that it names; those of the tutorial
and of the how-tos are typed by ``test_guides``, decisions are history."""

from __future__ import annotations

import ctypes.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.opencl.kernels import device
from tests.support.paths import ROOT
from tests.support.shipping.pages import PAGES, PLACEHOLDERS, blocks, helps, inline

APP = """#include <stdio.h>
#include <stdlib.h>
struct particle { FIELDS };
__attribute__((noinline)) void step(struct particle *p, long n) { for (long i = 0; i < n; i++) p[i].x += 0.5 * p[i].v; }
int main(void) {
    long n = 100000;
    struct particle *p = calloc(n, sizeof *p);
    for (long i = 0; i < n; i++) p[i].v = i % 7;
    for (int k = 0; k < 300; k++) step(p, n);
    printf("%g\\n", p[77].x);
}
"""
VIEWS = """#include <cstdio>
#include <vector>
struct Particle { double x, past[7], speed, shape[7], mass, force[7], charge, field[7], size, bonds[7], rest[24]; };
__attribute__((noinline)) void step(std::vector<Particle> &particles) {
    for (int k = 0; k < 40; k++) {
        double sum = 0;
        ANNOTATION
        for (auto &p : particles) {
            sum += p.speed * p.mass * p.charge * p.size;
            p.x += sum;
        }
    }
}
int main() {
    std::vector<Particle> particles(12000);
    for (unsigned i = 0; i < particles.size(); i++) {
        Particle &p = particles[i];
        p.speed = i % 7, p.mass = 1 + i % 3, p.charge = i % 2, p.size = 1;
    }
    for (int k = 0; k < 60; k++) step(particles);
    std::printf("%g\\n", particles[77].x);
}
"""
"""A program in which a copy around each call pays on any machine: 40 passes over five cache lines an element, more than fit
the second cache, against 480 KB; one addition waits for the other, so that no vectors gain more."""
LIST = """[defaults]
limit = 300
flags = { O2 = "-O2 -g" }
options = "--regions 1 --restores 3 --budget 3 --candidates 2"
[[program]]
name = "bzip2"
build = "gcc $FLAGS -o app $LIST/app.c"
run = "$BUILD/app"
[[program]]
name = "lua"
run = "/bin/true"
flags = {}
"""
HOST = """#define main original_main
#include "nbody.c"
#undef main
int main(void) { char *words[] = {"nbody", "256", "6", NULL}; return original_main(3, words); }
"""
NAMES = {"LIST.toml": "list.toml", "DIR": "farm.layout", "FILE.cpp": "particles.cpp", "OUT": "out.cpp", "BINARY": "./app"}
NAMES |= {"SYMBOL": "step", "K.cl": "k.cl", "K.toml": "args.toml", **PLACEHOLDERS}
ELSEWHERE = {
    "layout-advise doctor --install": "changes this machine; test_demo has its steps, test_wheel `--install criu`",
    "layout-advise doctor --install criu": "typed by test_wheel in an environment of its own",
    "layout-advise calibrate --device": "times kernels for hours; test_tiles does it with few of them",
    "layout-advise calibrate --device pthread": "the same",
    "layout-advise calibrate --cpu --device": "the same",
    "layout-advise calibrate": "times kernels for minutes; test_calibrate does it with few of them",
    "layout-advise farm list.toml -o farm.layout --scheduler tcp://10.0.0.1:8786 --everywhere": "machines; test_cluster",
    "layout-advise farm list.toml -o /shared/farm.layout --scheduler tcp://head:8786": "machines; test_cluster",
}
"""Commands that are not carried out here, and why."""
BASE = (
    "layout-advise trace -- ./app its args",
    "layout-advise trace -o before.layout -- ./app its args",
    "layout-advise trace -o after.layout --baseline before.layout -- ./changed its args",
)
"""What makes the runs that other commands read."""
ANSWERS = {"compare": {0, 3}, "guard": {0, 3}, "report": {0, 3}, "apply": {0, 1}, "emit": {0, 1}}
"""Exit codes besides 0 that hang on what was measured: 3 is an answer, 1 a layout that cannot be written."""


def documented() -> list[str]:
    """The commands, without remarks."""
    pages = [page for page in PAGES if page.parent.name not in ("howto", "decisions") and page.name != "tutorial.md"]
    shown = [line for page in pages for line in (*blocks(page), *inline(page))]
    lines = [*shown, *helps()]
    found = {line.split("  #")[0].strip() for line in lines if line.startswith("layout-advise ")}
    return sorted(found - {f"layout-advise {name}" for name in ("trace", "opencl", "farm", "views")})  # named in passing


def group(command: str) -> str:
    """The preparation that a command needs."""
    name = command.split()[1]
    if name == "trace" and "examples/" in command:
        return "papers"
    if name == "views" or "--temporary" in command:
        return "views"
    if name == "demo":
        return "demo"
    if name in ("opencl", "farm"):
        return name
    if name in ("layout", "help", "doctor"):
        return "plain"
    return "tracing" if name == "trace" and command not in BASE else "reading"


def prepared(folder: Path, kind: str) -> None:
    """The files that the commands of a group name."""
    (folder / "app.c").write_text(APP.replace("FIELDS", "double x, v, unused[6];"))
    (folder / "changed.c").write_text(APP.replace("FIELDS", "double v, x;"))
    (folder / "Makefile").write_text("app: app.c\n\tcc -O2 -g -o app app.c\nchanged: changed.c\n\tcc -O2 -g -o $@ $<\n")
    for name, text in (("input.dat", "1 2 3\n"), ("stdin.txt", "4\n"), ("list.toml", LIST)):
        (folder / name).write_text(text)
    subprocess.run(["make", "-s", "app", "changed"], cwd=folder, check=True)
    if kind == "papers":
        built = [name for command in of_group(kind) for name in re.findall(r"examples/(\S+)", command)]
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("bin"))
        subprocess.run(["make", "-s", "-C", "examples", *built], cwd=folder, check=True)
    else:
        (folder / "examples").symlink_to(ROOT / "examples")
    for name in ("a", "b"):
        (folder / f"{name}.layout").symlink_to({"a": "before", "b": "after"}[name] + ".layout")
    if kind == "views":
        for name in ("particles.cpp", "particles_annotated.cpp"):
            (folder / name).write_text(VIEWS.replace("ANNOTATION", "[[clang::soa_conversion]]"))
        (folder / "include").mkdir()
        subprocess.run(["g++", "-std=c++17", "-O2", "-g", "-w", "-o", "app", "particles.cpp"], cwd=folder, check=True)
    if kind == "opencl":
        device()
        if not Path("/usr/include/CL/cl.h").exists() or ctypes.util.find_library("OpenCL") is None:
            pytest.skip("needs ocl-icd-opencl-dev")
        kernels = ROOT / "examples" / "opencl"
        for name in ("k.cl", "nbody.cl"):  # the host reads the latter
            shutil.copy(kernels / "nbody.cl", folder / name)
        shutil.copy(kernels / "nbody.toml", folder / "args.toml")
        (folder / "host.c").write_text(HOST)
        words = ["gcc", "-std=c11", "-O1", "-I", str(kernels), "-o", "host", "host.c", "-lOpenCL"]
        subprocess.run(words, cwd=folder, check=True)
    for words in (["init", "-q"], ["add", "-f", "app.c", "changed.c", "Makefile"], ["commit", "-qm", "all"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *words], cwd=folder, check=True)


def typed(command: str, folder: Path) -> tuple[int, str]:
    """The exit code, and what was said on stderr."""
    for place, name in NAMES.items():
        command = re.sub(rf"(?<!\S){re.escape(place)}(?!\S)", name, command)
    own = f'layout-advise() {{ {shlex.quote(sys.executable)} -m layout_advise "$@"; }}\n'
    environment = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(Path.home() / ".cache"), "GITHUB_ACTIONS": ""}
    done = subprocess.run(
        ["bash", "-c", own + command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return done.returncode, done.stderr


def of_group(kind: str) -> list[str]:
    """The commands of a group in an order in which they can be typed: runs first, guards written before they are held."""
    found = [command for command in documented() if group(command) == kind and command not in ELSEWHERE]
    order = {"trace": 0, "views": 1, "guard": 2, "apply": 4}

    def key(command: str) -> tuple[int, bool, bool, bool]:
        later = ("--measure" in command or "--until" in command, "--check" in command, "annotated.cpp -o" in command)
        return (order.get(command.split()[1], 3), *later)

    first = [command for command in BASE if command in found] if kind == "reading" else []
    return [*first, *sorted((one for one in found if one not in first), key=key)]


GROUPS = ("plain", "demo", "reading", "tracing", "views", "opencl", "farm", "papers")


def test_every_command_belongs_somewhere() -> None:
    shown = documented()
    assert {group(command) for command in shown} == set(GROUPS)
    assert set(ELSEWHERE) <= set(shown)
    assert set(BASE) <= set(shown)
    assert len(shown) > 70


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", GROUPS)
def test_it_does_what_it_says(kind: str, tmp_path: Path) -> None:
    prepared(tmp_path, kind)
    failed = []
    for command in of_group(kind):
        output = re.search(r"-o (\S+)", command)
        if " trace " in command or " demo" in command:  # neither a complete run nor a guard is written over
            default = "app.layout" if " trace " in command else "demo.layout"
            shutil.rmtree(tmp_path / (output[1] if output else default), ignore_errors=True)
        if "--machine-profile" in command:  # of the same arguments
            shutil.rmtree(tmp_path / "app.layout", ignore_errors=True)
            assert typed(f"layout-advise trace --until report -- {command.partition(' -- ')[2]}", tmp_path)[0] == 0
        if " guard " in command and "--check" not in command and output:
            (tmp_path / output[1]).unlink(missing_ok=True)
        code, said = typed(command, tmp_path)
        wrong = code not in ANSWERS.get(command.split()[1], {0}) or "Traceback" in said
        if wrong or (code == 1 and said.splitlines()[-1][:15] != "layout-advise: "):
            failed.append((command, code, said[-1500:]))
        subprocess.run(["git", "checkout", "-q", "."], cwd=tmp_path, check=True)
    assert failed == []
