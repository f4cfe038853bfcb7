"""Types, lines, symbols and regions against what the compiler and binutils say of the same files."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from layout_advise.errors import BinaryError
from layout_advise.tracer.program import variables
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.dwarf_types import describe, pointee, type_name
from layout_advise.tracer.program.producer import compiler
from layout_advise.tracer.program.symbols import clone_of
from layout_advise.tracer.program.unwind import unwind_ranges

BUILDS = [
    ("gcc", "-O0"),
    ("gcc", "-O2"),
    ("gcc", "-O2 -gdwarf-4"),
    ("gcc", "-O2 -gdwarf-2"),
    ("clang", "-O0"),
    ("clang", "-O2"),
]
SCALARS = ["char", "short", "int", "long", "float", "double", "char *", "long double", "unsigned char"]


def build(folder: Path, name: str, source: str, compiler: str, flags: str = "-O2") -> Path:
    suffix = {"g++": ".cpp", "clang++": ".cpp", "gfortran": ".f90"}.get(compiler, ".c")
    (folder / f"{name}{suffix}").write_text(source)
    subprocess.run([compiler, "-g", *flags.split(), "-o", name, f"{name}{suffix}"], check=True, cwd=folder)
    return folder / name


def _random_structs(seed: int, count: int) -> tuple[str, list[tuple[str, list[str]]]]:
    """C declarations of ``count`` structures, and the member paths of each."""
    choose, text = random.Random(seed), ""
    made: list[tuple[str, list[str]]] = []
    for number in range(count):
        lines, paths = [], []
        for member in range(choose.randint(1, 6)):
            name, shape = f"m{member}", choose.random()
            if shape < 0.2 and made:
                other, inner = choose.choice(made)
                lines.append(f"{other} {name};")
                paths += [f"{name}.{p}" for p in inner]
            elif shape < 0.45:
                rows, columns = choose.randint(1, 3), choose.randint(1, 3)
                lines.append(f"{choose.choice(SCALARS)} {name}[{rows}][{columns}];")
                paths += [f"{name}[{i}][{j}]" for i in range(rows) for j in range(columns)]
            else:
                lines.append(f"{choose.choice(SCALARS)} {name};")
                paths.append(name)
        text += f"typedef struct {{ {' '.join(lines)} }} s{number};\n"
        made.append((f"s{number}", paths))
    return text, made


@pytest.mark.parametrize(("cc", "flags"), BUILDS)
def test_members_agree_with_offsetof(tmp_path: Path, cc: str, flags: str) -> None:
    declarations, structs = _random_structs(len(cc + flags), 25)
    prints = "".join(
        f'printf("{s} {p} %zu %zu\\n", offsetof({s}, {p}), sizeof g_{s}.{p});' for s, paths in structs for p in paths
    )
    uses = "".join(f"{s} g_{s};\n" for s, _ in structs)
    source = f"#include <stdio.h>\n#include <stddef.h>\n{declarations}{uses}int main(void) {{ {prints} return 0; }}\n"
    program = build(tmp_path, "offsets", source, cc, flags)
    wanted: dict[str, dict[str, tuple[int, int]]] = {}
    for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
        name, path, offset, size = line.split()
        wanted.setdefault(name, {})[path] = (int(offset), int(size))
    binary = ElfBinary.open(program)
    unit = binary.debug.unit_at(binary.find("main").start)
    assert unit is not None
    found = {v.name: describe(v.type) for v in variables.globals_of(binary.debug, unit, inside_functions=False)}
    for name, members in wanted.items():
        declared = found[f"g_{name}"]
        assert declared is not None
        assert declared.name == name
        assert {m.name: (m.offset, m.bytes) for m in declared.members} == members
    assert len(wanted) == 25


SHAPES = """
#include <stdlib.h>
typedef double real;
typedef struct node { real x; int f : 3, g : 5; unsigned h : 20; char tag; unsigned char late : 4;
  double _Complex c; union { char bytes[8]; int i; double d; short s[4]; } u; struct node *next; } node_t;
node_t pool[4][5]; float cube[2][3][4]; node_t *first; double big[2000]; const volatile real one = 1; void *any;
struct { double many[5000]; int n; } wide;
static int lookup(int k) { static int table[8]; table[k & 7]++; return table[k & 3]; }
int main(int c, char **v) { first = &pool[1][c & 1]; return lookup(c) + (v == any) + (int)cube[1][0][c & 1]
  + (int)wide.many[c]; }
"""


@pytest.mark.parametrize(("cc", "flags"), BUILDS)
def test_declarations(tmp_path: Path, cc: str, flags: str) -> None:
    binary = ElfBinary.open(build(tmp_path, "shapes", SHAPES, cc, flags))
    unit = binary.debug.unit_at(binary.find("main").start)
    assert unit is not None
    types = {v.name: v.type for v in variables.globals_of(binary.debug, unit, inside_functions=True)}
    pool, cube, table = describe(types["pool"]), describe(types["cube"]), describe(types["table"])
    assert pool is not None
    assert cube is not None
    assert table is not None
    assert (pool.name, pool.dims, pool.element_bytes, pool.bytes) == ("node_t", (4, 5), 48, 960)
    names = [(m.name, m.offset, m.bytes, m.union) for m in pool.members]
    plain = [n for n in names if "f" not in n[0] and "late" not in n[0]]
    assert plain == [("x", 0, 8, False), ("tag", 12, 1, False), ("c.re", 16, 8, False), ("c.im", 24, 8, False),
                     ("u.d", 32, 8, True), ("next", 40, 8, False)]  # fmt: skip
    assert [n for n in names if n not in plain] == [("f|g|h", 8, 4, False), ("late", 13, 1, False)]
    assert pool.members[0].type == "double"
    assert (cube.name, cube.dims, cube.members[0].bytes) == ("float", (2, 3, 4), 4)
    assert (table.name, table.dims) == ("int", (8,))
    target = describe(pointee(types["first"]))
    assert target is not None
    assert (target.name, target.dims) == ("node_t", ())
    assert type_name(types["first"]).startswith("node")
    assert describe(pointee(types["any"])) is None
    wide = describe(types["wide"])
    assert wide is not None
    assert [(m.name, m.bytes) for m in wide.members] == [("many", 40000), ("n", 4)]


@pytest.mark.parametrize(("cc", "flags"), BUILDS)
def test_parameters_at_the_entry(tmp_path: Path, cc: str, flags: str) -> None:
    source = """struct p { double x; int id; };
    __attribute__((noinline)) double work(double s, const struct p *q, long n, float f, int *out, struct p whole[3]) {
      for (long k = 0; k < n; k++) { s += q[k].x * f; out[k] = whole[0].id; } return s; }
    struct p a[9]; int o[9]; int main(int c, char **v) { return (int)work(c, a, c, 1.5f, o, a) + (v == 0); }"""
    binary = ElfBinary.open(build(tmp_path, "entry", source, cc, flags))
    function = binary.find("work")
    found = variables.parameters(binary.debug, function.start, clone=function.clone is not None)
    pointers = {v.name: (v.place.number, type_name(v.type)) for v in found if type_name(v.type).endswith("*")}
    assert pointers == {"q": (7, "p *"), "out": (2, "int *"), "whole": (1, "p *")}


@pytest.mark.parametrize(("cc", "flags"), BUILDS)
def test_lines_agree_with_addr2line(tmp_path: Path, cc: str, flags: str) -> None:
    program = build(tmp_path, "lines", SHAPES, cc, flags)
    binary = ElfBinary.open(program)
    main = binary.find("main")
    addresses = list(range(main.start, main.end))
    text = "".join(f"{a:#x}\n" for a in addresses)
    done = subprocess.run(["addr2line", "-e", program], input=text, capture_output=True, text=True, check=True)
    for address, line in zip(addresses, done.stdout.splitlines(), strict=True):
        place = binary.line(address)
        number = re.match(r"(.*):(\d+)", line)
        assert place is not None
        assert number is not None
        assert (place.file, place.line) == (number.group(1), int(number.group(2)))


def test_functions_agree_with_nm(tmp_path: Path) -> None:
    program = build(tmp_path, "shapes", SHAPES, "gcc", "-O2 -fno-inline")
    binary = ElfBinary.open(program)
    listed = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    sized = [line.split() for line in listed.splitlines() if re.search(r" [tT] ", line) and len(line.split()) == 4]
    assert {(int(a, 16), int(s, 16), n) for a, s, _, n in sized} <= {(f.start, f.size, f.name) for f in binary.functions}
    datas = [line.split() for line in listed.splitlines() if re.search(r" [bBdDrR] ", line) and len(line.split()) == 4]
    known = {(v.address, v.size) for v in binary.variables}
    assert {(int(a, 16), int(s, 16)) for a, s, _, _ in datas} <= known
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    assert binary.build_id
    assert binary.build_id in notes


def test_unwind_table_gives_stripped_functions_their_bounds(tmp_path: Path) -> None:
    program = build(tmp_path, "app", SHAPES, "gcc", "-O1 -fno-inline")
    full = ElfBinary.open(program)
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    bare = ElfBinary.open(stripped)
    function = full.find("lookup")
    found = bare.function_at(function.start)
    assert found is not None
    assert (found.start, found.size, found.anonymous) == (function.start, function.size, True)
    assert unwind_ranges(bare._elf)[function.start] == function.size


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("work", ("work", None)),
        ("work.constprop.0", ("work", "constprop")),
        ("work.constprop.0.cold", ("work", "cold")),
        ("f.isra.0.part.1", ("f", "part")),
        ("main._omp_fn.0", ("main", "omp")),
        ("main.omp_outlined", ("main", "omp")),
        (".omp_outlined.", ("", "omp")),
        ("a.b", ("a.b", None)),
    ],
)
def test_clone_names(name: str, expected: tuple[str, str | None]) -> None:
    assert clone_of(name) == expected


def test_region_takes_its_cold_part_and_callees_of_two_levels(tmp_path: Path) -> None:
    source = """#include <stdlib.h>
    __attribute__((noinline)) double deepest(double x) { return x - 3; }
    __attribute__((noinline)) double leaf(double x) { return deepest(x) * x + 1; }
    __attribute__((noinline)) double step(double x) { return leaf(x) * 2; }
    __attribute__((noinline)) double work(double *p, long n) { double s = 0;
      for (long k = 0; k < n; k++) { if (__builtin_expect(p[k] < -1e9, 0)) abort(); s += step(p[k]); } return s; }
    double d[100]; int main(int c, char **v) { return (int)work(d, c + 9) + (v == 0); }"""
    binary = ElfBinary.open(build(tmp_path, "cold", source, "gcc", "-O2"))
    region = binary.region("work", 0x10000, callees=True)
    names = {f.start: f.name for f in binary.functions}
    assert [names[r.start - 0x10000] for r in region.ranges] == ["work", "work.cold"]
    assert region.entry == binary.find("work").start + 0x10000
    assert [c.symbol for c in region.callees] == ["step", "leaf"]
    assert binary.region("work", 0).callees == ()


def test_a_callee_that_leads_back_into_the_function_is_none(tmp_path: Path) -> None:
    """clustalw: the loops of ``diff.part.0`` were traced to the end of the recursion, as ``diff`` jumps to it."""
    source = """__attribute__((noinline)) int leaf(int x) { return x + 1; }
    __asm__(".globl half\\n.type half,@function\\nhalf: test %edi,%edi\\njg half.part.0\\nmov $1,%eax\\nret\\n"
            ".size half,.-half\\n.type half.part.0,@function\\nhalf.part.0: push %rbx\\nmov %edi,%ebx\\n"
            "call leaf\\nlea -2(%rbx),%edi\\ncall half\\npop %rbx\\nret\\n.size half.part.0,.-half.part.0\\n");
    int half(int); int main(int c, char **v) { return half(c + leaf(c)) + (v == 0); }"""
    binary = ElfBinary.open(build(tmp_path, "half", source, "gcc", "-O2"))
    assert [c.symbol for c in binary.region("half.part.0", 0, callees=True).callees] == ["leaf"]


def test_cpp_names(tmp_path: Path) -> None:
    source = """#include <vector>
    namespace ns { template <class T> struct Grid { std::vector<T> v; __attribute__((noinline)) T sum(int n) const {
      T s = 0; for (int k = 0; k < n; k++) s += v[k]; return s; } }; }
    __attribute__((noinline)) long twice(int a) { return 2L * a; }
    __attribute__((noinline)) long twice(long a) { return 2 * a; }
    int main(int c, char **) { ns::Grid<double> g; g.v.resize(10); return int(g.sum(c) + twice(c) + twice(long(c))); }"""
    binary = ElfBinary.open(build(tmp_path, "cpp", source, "g++", "-O1"))
    function = binary.find("ns::Grid<double>::sum")
    assert binary.demangled[function.name] == "ns::Grid<double>::sum(int) const"
    assert binary.find("sum") == function
    assert binary.find("twice(int)").start != binary.find("twice(long)").start
    with pytest.raises(BinaryError, match="not one function"):
        binary.find("twice")


@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_inlined_chains_agree_with_addr2line(tmp_path: Path, cc: str) -> None:
    source = """static inline double square(double x) { return x * x + 1; }
    static inline double both(double x, double y) { return square(x) / square(y) + x; }
    __attribute__((noinline)) double work(double *p, long n) { double s = 0;
      for (long k = 0; k < n; k++) s += both(p[k], s); return s; }
    double d[9]; int main(int c, char **v) { return (int)work(d, c) + (v == 0); }"""
    # binutils 2.40 does not follow clang's DWARF 5 range lists of inlined calls
    program = build(tmp_path, "inlined", source, cc, "-O2 -gdwarf-4" if cc == "clang" else "-O2")
    binary = ElfBinary.open(program)
    function = binary.find("work")
    deepest = 0
    for address in range(function.start, function.end):
        command = ["addr2line", "-i", "-f", "-e", str(program), f"{address:#x}"]
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[::2]
        chain = [call.function for call in binary.inlined(address)]
        assert [*chain, "work"] == names
        deepest = max(deepest, len(chain))
    assert deepest == 2


def test_fortran_names_and_array_order(tmp_path: Path) -> None:
    source = """module m
      real(8) :: grid(3, 5, 7)
    contains
      subroutine relax(n)
        integer, intent(in) :: n
        grid(1, 2, n) = grid(1, 1, n) + 1
      end subroutine
    end module
    program p
      use m
      call relax(command_argument_count() + 1)
    end program"""
    binary = ElfBinary.open(build(tmp_path, "fort", source, "gfortran", "-O1"))
    function = binary.find("relax")
    assert function.name == "__m_MOD_relax"
    unit = binary.debug.unit_at(function.start)
    assert unit is not None
    found = {v.name: describe(v.type) for v in variables.globals_of(binary.debug, unit, inside_functions=True)}
    assert found["grid"] is not None
    assert found["grid"].dims == (7, 5, 3)


def test_compiler_and_flags(tmp_path: Path) -> None:
    text = (
        "GNU C17 12.2.0 -mtune=generic -march=haswell -mno-fma --param=l1-cache-size=32 -g -O3 -std=c11 "
        "-ffast-math -fopenmp -fstack-protector -fPIC -fasynchronous-unwind-tables"
    )
    made = compiler(text)
    assert made.family == "gcc"
    assert made.recorded
    wanted = ("-mtune=generic", "-march=haswell", "-mno-fma", "--param=l1-cache-size=32", "-O3", "-ffast-math")
    assert made.flags == wanted
    fortran = compiler("GNU Fortran2008 12.2.0 -mtune=generic -march=x86-64 -O2 -fdefault-real-8 -fpre-include=/x/y.h")
    assert fortran.flags == ("-mtune=generic", "-march=x86-64", "-O2")
    assert compiler(None).family == "other"
    assert compiler(None).why
    source = "double a[99], b[99]; int main(void) { for (int k = 0; k < 99; k++) a[k] += b[k] * a[k]; }"
    program = build(tmp_path, "avx", source, "clang", "-O2 -mavx2 -mfma -ffp-contract=fast")
    binary = ElfBinary.open(program)
    main = binary.find("main")
    seen = binary.compiler(main)
    assert seen.family == "clang"
    assert not seen.recorded
    assert {"-O2", "-mavx", "-mfma"} <= set(seen.flags)
    assert not any("avx512" in flag for flag in seen.flags)


def test_arguments_pushed_for_a_call_that_may_throw(tmp_path: Path) -> None:
    """g++ writes DW_CFA_GNU_args_size into the unwind table (libsvm), which pyelftools does not know."""
    source = """
        struct Big { double v[9]; Big(const Big &); Big(); ~Big(); };
        __attribute__((noipa)) int take(Big, Big, int, int, int, int, int, int, int, int) { throw 1; }
        Big::Big() {} Big::Big(const Big &) {} Big::~Big() {}
        int main(int n, char **) { try { Big b; return take(b, b, n, n, n, n, n, n, n, n); } catch (int) { return 0; } }
    """
    (tmp_path / "pushed.cc").write_text(source)
    subprocess.run(["g++", "-g", "-O2", "-o", tmp_path / "pushed", tmp_path / "pushed.cc"], check=True)
    dumped = subprocess.run(
        ["readelf", "--debug-dump=frames", tmp_path / "pushed"], capture_output=True, text=True, check=True
    )
    assert "DW_CFA_GNU_args_size" in dumped.stdout
    binary = ElfBinary.open(tmp_path / "pushed")
    main = binary.find("main")
    for at in range(main.start, main.start + main.size):
        for variable in variables.locals_at(binary.debug, at):
            assert variable.name in ("n", "b")


@pytest.mark.parametrize(("cc", "flags"), BUILDS)
def test_result_registers(tmp_path: Path, cc: str, flags: str) -> None:
    """By the System V calling convention: rax, xmm0, both or neither."""
    kinds = {
        "void": "none", "int": "int", "char *": "int", "unsigned long": "int", "_Bool": "int", "enum e": "int",
        "number": "float", "float": "float", "long double": "any", "double _Complex": "any", "struct two": "any",
    }  # fmt: skip
    source = "enum e { one };\ntypedef double number;\nstruct two { long a; double b; };\nint main(void) { return 0; }\n"
    for k, kind in enumerate(kinds):
        body = "(void)x;" if kind == "void" else "return x;"
        source += f"__attribute__((noinline)) {kind} f{k}({'int' if kind == 'void' else kind} x) {{ {body} }}\n"
    file = ElfBinary.open(build(tmp_path, "results", source, cc, flags))
    found = {kind: file.result_kind(file.find(f"f{k}")) for k, kind in enumerate(kinds)}
    assert found == kinds


@pytest.mark.parametrize("flags", ["-O2", "-O3 -march=haswell"])
def test_a_clone_of_a_void_function_returns_nothing(tmp_path: Path, flags: str) -> None:
    """``x[k] = ...`` may leave anything in xmm0; of a clone that may return less than its function, it is not known."""
    source = """
        __attribute__((noinline)) static void scale(double *x, long n, double by) {
            for (long k = 0; k < n; k++) x[k] *= by; }
        __attribute__((noinline)) static double sum(double *x, long n, double by) {
            double all = 0.0; for (long k = 0; k < n; k++) all += x[k] * by; return all; }
        double data[999];
        int main(void) { scale(data, 999, 0.5); scale(data, 99, 0.5);
            return (int)(sum(data, 999, 2.0) + sum(data, 99, 2.0)); }
    """
    file = ElfBinary.open(build(tmp_path, "clones", source, "gcc", flags))
    scale, total = (next(f for f in file.functions if f.parent == name) for name in ("scale", "sum"))
    assert (scale.clone, total.clone) == ("constprop", "constprop")
    assert (file.result_kind(scale), file.result_kind(total)) == ("none", "any")
