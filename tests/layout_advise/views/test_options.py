"""Conversion by threads and times of views, with both compilers, and the example of the papers' kernels."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.viewed.programs import COMPILERS, FLAGS, WARNINGS, output, program, with_views

EXAMPLE = Path(__file__).parents[3] / "examples" / "sph_views" / "sph_views.cpp"
KERNELS = [
    kernel + kind
    for kernel in ("density_branch", "density_mask", "force_branch", "force_mask", "drift", "kick1", "kick2")
    for kind in ("", "_scattered")
]
ON = "[[clang::soa_conversion]]"
FAR = "[[clang::soa_conversion_offload_compute]]"
LOOP = f"{ON} for (auto &p : a) {{ p.x += dt * p.y; p.rho = p.x; }}\n{ON} for (auto *p : s) p->y -= 0.5;"
EACH = [pytest.param(one, marks=pytest.mark.slow if k else ()) for k, one in enumerate(COMPILERS)]


def built(source: Path, compiler: str, *flags: str) -> Path:
    """The program of a file, compiled with warnings as errors."""
    made = source.with_name(f"{source.stem}-{compiler}")
    command = [compiler, *FLAGS, *WARNINGS, *flags, str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
def test_threads_convert_to_the_same_bytes(compiler: str, tmp_path: Path) -> None:
    if not _builds(compiler, ("-fopenmp",), tmp_path):
        pytest.skip("this compiler's OpenMP is not installed")
    source = program(LOOP)
    new, _ = with_views(source, tmp_path, openmp=True)
    assert new.count("#pragma omp parallel for") == 4
    assert output(new, compiler, tmp_path, "-fopenmp") == output(source, compiler, tmp_path)
    assert output(new, compiler, tmp_path) == output(source, compiler, tmp_path)


@pytest.mark.parametrize("compiler", EACH)
def test_times_tell_each_view(compiler: str, tmp_path: Path) -> None:
    source = program(LOOP)
    new, _ = with_views(source, tmp_path, timed=True)
    plain = output(source, compiler, tmp_path)
    assert output(new, compiler, tmp_path) == plain
    told = subprocess.run([str(tmp_path / "run")], capture_output=True, check=True, timeout=60)
    assert told.stdout == plain
    text = told.stderr.decode()
    found = re.findall(r"view (\S+): in (\d+) ns, computing (\d+) ns, back (\d+) ns, (\d+) times, (\d+) elements", text)
    lines = [k for k, line in enumerate(source.splitlines(), 1) if ON in line]
    assert [(name, int(runs), int(elements)) for name, _, _, _, runs, elements in found] == [
        (f"program.cpp:{line}", 3, 3 * 257) for line in lines
    ]
    assert all(int(one[1]) > 0 and int(one[3]) > 0 for one in found)


@pytest.mark.parametrize("compiler", EACH)
def test_offloaded_loops_leave_the_same_bytes(compiler: str, tmp_path: Path) -> None:
    """On the host, without and with OpenMP; by clang's second host device also with arrays that are really mapped."""
    before = "const double shift = 0.5;\nstatic void push(P &p, double by) { p.x += by * p.y + shift; }"
    body = (
        f"{FAR} {ON} for (auto &p : a) {{ p.x += dt * p.y; if (p.tag == 3) continue; push(p, dt); }}\n"
        f"{FAR} {ON} for (auto &p : b) {{ double sum = 0; {ON} [[clang::soa_conversion_hoist(1)]]\n"
        "for (const auto &q : a) { if (q.x > 90) break; sum += p.far(q); } p.rho = sum; }\n"
        f"{FAR} {ON} for (auto *p : s) for (auto &one : p->v) one -= p->x;"
    )
    source = program(body, before)
    new, members = with_views(source, tmp_path)
    assert len(members) == 4
    assert new.count("#pragma omp target teams distribute parallel for map(") == 3
    plain = output(source, compiler, tmp_path)
    for flags in ((), ("-fopenmp",), ("-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu")):
        if not flags or _builds(compiler, flags, tmp_path):
            assert output(new, compiler, tmp_path, *flags) == plain


def _builds(compiler: str, flags: tuple[str, ...], folder: Path) -> bool:
    """True where this compiler's OpenMP, or its device, is installed."""
    source = folder / "with_openmp.cpp"
    source.write_text("int main()\n{\n#pragma omp target\n    ;\n}\n")
    command = [compiler, *flags, str(source), "-o", str(folder / "with_openmp")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_members_may_have_any_name(tmp_path: Path) -> None:
    """Names of the views' own classes begin with soa_; a member may be called as parts of theirs once were."""
    names = ("count", "first", "ready", "begin", "end", "iterator", "of", "k", "elements", "soa", "from", "to", "held")
    before = f"struct Q {{ {' '.join(f'double {name};' for name in names)} }};\nstd::vector<Q> odd(9);\n"
    body = f"{ON} for (auto &q : odd) {{ {' '.join(f'q.{name} += {k}.5;' for k, name in enumerate(names))} }}\n"
    body += f"a[0].x = {' + '.join(f'odd[3].{name}' for name in names)};"
    source = program(body, before)
    for compiler in COMPILERS:
        new, _ = with_views(source, tmp_path, timed=True)
        assert output(new, compiler, tmp_path) == output(source, compiler, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_example_leaves_the_same_bytes(compiler: str, tmp_path: Path) -> None:
    flags = ("-O3", "-ffp-contract=off")
    (tmp_path / "old.cpp").write_text(EXAMPLE.read_text())
    new, members = with_views(EXAMPLE.read_text(), tmp_path)
    (tmp_path / "new.cpp").write_text(new)
    programs = [built(tmp_path / name, compiler, *flags) for name in ("old.cpp", "new.cpp")]
    assert len(members) == 22
    for kernel in KERNELS:
        before, after, later = (
            subprocess.run(
                [str(one), kernel, "70", "3", calls], capture_output=True, text=True, check=True, timeout=60
            ).stdout
            for one, calls in zip((*programs, programs[1]), "223", strict=True)
        )
        assert before == after != later
