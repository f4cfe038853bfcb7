"""Real programs stopped at their hotspot: what they touch is found, named and typed from the source, or not at all."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from elftools.dwarf.die import DIE
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.declared import Declared
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point
from layout_advise.layoutalgebra.sets.spans import addresses, spans
from layout_advise.tracer.objects import object_names
from layout_advise.tracer.program.dwarf_types import describe
from tests.support.tracing.traced_objects import trace_objects

PARTICLES = """
#include <stdlib.h>
struct particle { double x, v, m; int id; };
static double table[16]; double *weights;
__attribute__((noinline)) double work(struct particle *p, long n) {
  double s = 0;
  for (long k = 0; k < n; k++) { p[k].x += p[k].v * table[k & 15]; s += p[k].x * weights[k]; }
  return s; }
int main(void) {
  struct particle *all = calloc(100, sizeof *all);
  weights = malloc(90 * sizeof *weights);
  for (int k = 0; k < 90; k++) { weights[k] = k; table[k & 15] = k; }
  double s = work(all, 90);
  free(all); return s > 1; }
"""


@pytest.mark.parametrize("build", ["gcc -g -O0", "gcc -g -O2", "gcc -g -O3 -march=haswell", "clang -g -O0", "clang -g -O2"])
def test_heap_blocks_and_globals(tmp_path: Path, logger: Path, build: str) -> None:
    compiler, flags = build.split(" ", 1)
    stopped = trace_objects(tmp_path, logger, PARTICLES, compiler, flags)
    block = stopped.object("p")
    assert (block.kind, block.bytes, block.alloc_site) == ("heap", 3200, "app.c:10")
    assert block.type is not None
    assert (block.type.name, block.type.element_bytes) == ("particle", 32)
    assert [m.name for m in block.type.members] == ["x", "v", "m", "id"]
    assert block.element_base == block.base
    # at -O0 the pointer variable of that name is read as well
    weights = next(o for o in stopped.found.objects if o.name == "weights" and o.kind == "heap")
    assert (weights.kind, weights.bytes, weights.alloc_site) == ("heap", 720, "app.c:11")
    assert weights.type is not None
    assert weights.type.name == "double"
    table = stopped.object("table")
    assert (table.kind, table.bytes) == ("global", 128)
    assert table.type is not None
    assert table.type.dims == (16,)
    assert stopped.found.inexact == (None,) * len(stopped.trace.references)
    total = sum(t.accesses or 0 for touches in stopped.found.touches for t in touches)
    assert total == stopped.trace.accesses
    if "-O0" not in flags:
        assert not any(o.kind == "mapped" for o in stopped.found.objects)


def test_memory_beside_a_block_is_not_named_after_what_points_to_the_block(tmp_path: Path, logger: Path) -> None:
    """What a call allocates and frees again is no block when it is looked at: ``c: 52 736 × cfg_t``, said a report."""
    source = """
        #include <stdint.h>
        #include <stdlib.h>
        #include <unistd.h>
        typedef struct { double w[4]; int n; } cfg_t;
        cfg_t *cfg; uintptr_t scratch;
        __attribute__((noinline)) double work(cfg_t *c, long n) {
            double *t = (double *)scratch, s = 0;
            for (long i = 0; i < n; i++) t[i] = c->w[i % 4] * c->n;
            for (long i = 0; i < n; i++) s += t[i];
            return s; }
        int main(void) { cfg = calloc(1, sizeof *cfg); cfg->n = 3; scratch = (uintptr_t)sbrk(1 << 16);
            return work(cfg, 500) != 0.0; }
    """
    stopped = trace_objects(tmp_path, logger, source, "gcc", "-g -O1")
    assert stopped.object("cfg" if "cfg" in stopped.names else "c").kind == "heap"
    beside = stopped.object("heap memory of no block")
    assert (beside.kind, beside.type) == ("mapped", None)
    assert stopped.accesses(beside.name) == 1000
    blocks = [o for o in stopped.found.objects if o.kind == "heap"]
    assert all(o.end <= beside.base or beside.end <= o.base for o in blocks)


def test_memory_between_blocks_is_no_array_that_holds_the_blocks(tmp_path: Path, logger: Path) -> None:
    """qhull: what its calls allocate and free again was one array over all of the heap, 92 MB."""
    source = """
        #include <stdint.h>
        #include <stdlib.h>
        #include <unistd.h>
        double *kept; uintptr_t first, second;
        __attribute__((noinline)) double work(double *c, long n) {
            double *a = (double *)first, *b = (double *)second, s = 0;
            for (long i = 0; i < n; i++) { s += a[i] + c[i]; b[i] = s; }
            return s; }
        int main(void) {
            first = (uintptr_t)sbrk(1 << 16); kept = calloc(100000, 1); second = (uintptr_t)sbrk(1 << 16);
            return work(kept, 400) != 0.0; }
    """
    stopped = trace_objects(tmp_path, logger, source, "gcc", "-g -O1")
    (block,) = (o for o in stopped.found.objects if o.kind == "heap")
    between = sorted((o for o in stopped.found.objects if o.name == "heap memory of no block"), key=lambda o: o.base)
    assert len(between) == 2
    assert between[0].end <= block.base
    assert block.end <= between[1].base


def test_without_debug_information_nothing_is_guessed(tmp_path: Path, logger: Path) -> None:
    stopped = trace_objects(tmp_path, logger, PARTICLES, "gcc", "-O2")
    heap = [o for o in stopped.found.objects if o.kind == "heap"]
    assert sorted(o.bytes for o in heap) == [720, 3200]
    assert all(o.type is None and o.alloc_site is None and o.name.startswith("heap block") for o in heap)
    assert stopped.object("table").type is None


def test_void_pointers_give_a_name_but_no_type(tmp_path: Path, logger: Path) -> None:
    source = """#include <stdlib.h>
    __attribute__((noinline)) long work(void *data, long n) { long s = 0;
      for (long k = 0; k < n; k++) s += ((long *)data)[k];
      return s; }
    int main(void) { return (int)work(calloc(50, 8), 50); }"""
    stopped = trace_objects(tmp_path, logger, source, "gcc", "-g -O1")
    assert stopped.object("data").type is None


@pytest.mark.parametrize("flags", ["-g -O0", "-g -O2"])
def test_caller_gives_names_and_stack_arrays(tmp_path: Path, logger: Path, flags: str) -> None:
    source = """#include <stdlib.h>
    typedef struct { float r, g, b, a; } pixel;
    struct image { long n; pixel *pixels; double *rows[3]; };
    __attribute__((noinline)) float work(struct image *im, const float (*gains)[4]) {
      float s = 0;
      for (long k = 0; k < im->n; k++) s += im->pixels[k].g * gains[k % 10][1] + im->rows[1][k];
      return s; }
    int main(int c, char **v) {
      float gains[10][4]; struct image im = {40, malloc(40 * sizeof(pixel)), {0}};
      for (int k = 0; k < 3; k++) im.rows[k] = calloc(40, 8);
      for (int k = 0; k < 40; k++) { im.pixels[k].g = k; gains[k % 10][1] = k * c; }
      return (int)work(&im, gains) + (v == 0); }"""
    stopped = trace_objects(tmp_path, logger, source, "gcc", flags)
    pixels = next(o for o in stopped.found.objects if o.bytes == 640 and o.kind == "heap")
    assert pixels.name in ("im->pixels", "im.pixels")
    assert pixels.type is not None
    assert (pixels.type.name, pixels.type.element_bytes) == ("pixel", 16)
    assert {n for n in stopped.names if "rows" in n} <= {"im->rows[1]", "im.rows[1]"}
    gains = stopped.object("gains")
    assert (gains.kind, gains.bytes) == ("stack", 160)
    assert gains.type is not None
    assert gains.type.dims == (10, 4)
    assert stopped.object("im").kind == "stack"


def test_rows_of_rows(tmp_path: Path, logger: Path) -> None:
    source = """#include <stdlib.h>
    __attribute__((noinline)) double work(double **grid, int n) { double s = 0;
      for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) s += grid[i][j]; return s; }
    int main(void) { double **g = malloc(8 * sizeof *g); for (int k = 0; k < 8; k++) g[k] = calloc(8, 8);
      return (int)work(g, 8); }"""
    stopped = trace_objects(tmp_path, logger, source, "gcc", "-g -O2")
    assert {f"grid[{k}]" for k in range(8)} | {"grid"} <= stopped.names
    assert all(stopped.accesses(f"grid[{k}]") == 8 for k in range(8))
    # one instruction reads all eight rows
    assert any(stopped.found.mixed(r.id) for r in stopped.trace.references)


def test_cpp_vectors(tmp_path: Path, logger: Path) -> None:
    source = """#include <vector>
    struct cell { double u, w; int n; };
    struct model { std::vector<cell> cells; std::vector<double> rates; };
    __attribute__((noinline)) double work(const model &m) { double s = 0;
      for (unsigned k = 0; k < m.cells.size(); k++) s += m.cells[k].u * m.rates[k]; return s; }
    int main() { model m; m.cells.resize(30); m.rates.resize(30, 2.0); return (int)work(m); }"""
    stopped = trace_objects(tmp_path, logger, source, "g++", "-g -O2")
    cells = next(o for o in stopped.found.objects if o.kind == "heap" and o.bytes == 720)
    assert cells.name in ("m->cells", "m.cells")
    assert cells.type is not None
    assert (cells.type.name, [m.name for m in cells.type.members]) == ("cell", ["u", "w", "n"])


def test_fortran_arrays(tmp_path: Path, logger: Path) -> None:
    source = """module state
      type particle
        real(8) :: x, v
        integer :: id
      end type
      type(particle), allocatable :: cloud(:)
      real(8) :: field(4, 50)
    contains
      subroutine work(s)
        real(8), intent(inout) :: s
        integer :: k
        do k = 1, 50
          s = s + cloud(k)%x * field(2, k)
        end do
      end subroutine
    end module
    program p
      use state
      real(8) :: s
      allocate(cloud(50))
      s = 0
      cloud(:)%x = 1
      call work(s)
      print *, s
    end program"""
    stopped = trace_objects(tmp_path, logger, source, "gfortran", "-g -O1")
    cloud = next(o for o in stopped.found.objects if o.kind == "heap")
    assert (cloud.name, cloud.bytes) == ("cloud", 50 * 24)
    assert cloud.type is not None
    assert [(m.name, m.offset) for m in cloud.type.members] == [("x", 0), ("v", 8), ("id", 16)]
    field = stopped.object("field")
    assert field.type is not None
    assert field.type.dims == (50, 4)


MESH = """module mesh
  type element
    integer :: n(3), mat
    real(8) :: area, history(6)
  end type
  type grid
    integer :: ne
    type(element), allocatable :: elems(:)
  end type
  type model
    real(8) :: dt
    type(grid) :: g
    real(8), pointer :: load(:)
  end type
contains
  subroutine work(m, w, rows)
    type(model), intent(inout) :: m
    integer, intent(in) :: rows
    real(8), intent(in) :: w(rows)
    integer :: e
    do e = 1, m%g%ne
      m%load(m%g%elems(e)%n(1)) = m%g%elems(e)%area * w(e)
    end do
  end subroutine
  subroutine driver(m, v, rows)
    type(model), intent(inout) :: m
    real(8), allocatable, intent(in) :: v(:)
    integer, intent(in) :: rows
    call work(m, v, rows)
  end subroutine
end module
"""
MESH_MAIN = """program p
  use mesh
  type(model), allocatable :: m
  real(8), allocatable :: v(:)
  integer :: e
  allocate(m)
  m%g%ne = 40
  allocate(m%g%elems(40), m%load(50), v(60))
  v = 2
  do e = 1, 40
    m%g%elems(e)%n = e
    m%g%elems(e)%area = e
  end do
  call driver(m, v, 60)
  print *, m%load(7)
end program
"""


@pytest.mark.parametrize("flags", ["-g -O1", "-g -O2 -fno-inline -fno-ipa-cp -fno-ipa-sra -fno-ipa-ra"])
def test_fortran_components(tmp_path: Path, logger: Path, flags: str) -> None:
    """Allocatable and pointer components of a nested derived type that is handed over by reference, twice."""
    stopped = trace_objects(tmp_path, logger, MESH + MESH_MAIN, "gfortran", flags)
    heap = {o.name: o for o in stopped.found.objects if o.kind == "heap"}
    assert {"m%g%elems", "m%load", "w", "m"} >= set(heap) >= {"m%g%elems", "m%load", "w"}
    elements = heap["m%g%elems"].type
    assert elements is not None
    assert (elements.name, elements.element_bytes) == ("element", 72)
    assert [m.name for m in elements.members][:5] == ["n[0]", "n[1]", "n[2]", "mat", "area"]
    assert heap["m%load"].bytes == 50 * 8
    assert [t.name for t in (heap["m%load"].type, heap["w"].type) if t is not None] == ["real(kind=8)"] * 2


@st.composite
def nests(draw: st.DrawFn, depth: int = 0) -> Node:
    def affine(low: int, high: int, coef: int) -> Affine:
        coefs = tuple(draw(st.integers(0 if coef < 3 else -coef, coef)) for _ in range(depth))
        return Affine(draw(st.integers(low, high)), coefs)

    if depth == 3 or (depth and draw(st.booleans())):
        return Point(affine(1 << 20, 1 << 21, 1000))
    return Loop(affine(1, 4, 2), tuple(draw(nests(depth + 1)) for _ in range(draw(st.integers(1, 2)))))


@given(nests())
def test_spans_are_the_exact_hulls(node: Node) -> None:
    every = list(FoldedStream((node,), 0).expand())
    stream = FoldedStream((node,), len(every))
    found = spans(stream)
    assert min(s.low for s in found) == min(every)
    assert max(s.high for s in found) == max(every)
    expanded = [addresses(s) for s in found]
    assert Counter(a for e in expanded if e is not None for a in e.tolist()) == Counter(every)
    for span, values in zip(found, expanded, strict=True):
        assert values is not None
        assert (span.low, span.high) == (values.min(), values.max())
        assert span.count in (None, len(values))


@given(st.sets(st.integers(0, 500), min_size=1))
def test_spans_of_sets(steps: set[int]) -> None:
    base, gcd = 4096, 24
    low = min(steps)
    bits = np.zeros(max(steps) - low + 1, dtype=np.uint8)
    bits[[s - low for s in steps]] = 1
    packed = np.packbits(bits, bitorder="little").tobytes()
    found = AddressSet(base + gcd * low, base + gcd * max(steps), gcd, 3 * len(steps), packed)
    (span,) = spans(found)
    expanded = addresses(span)
    assert expanded is not None
    assert expanded.tolist() == [base + gcd * s for s in sorted(steps)]
    assert addresses(spans(AddressSet(0, 1 << 40, 8, 10, None))[0]) is None


def test_each_type_is_described_once(tmp_path: Path, logger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack's variables were described anew for each span of addresses: minutes where frames hold many."""
    described: Counter[int] = Counter()

    def counted(die: DIE | None) -> Declared | None:
        if die is not None:
            described[die.offset] += 1
        return describe(die)

    monkeypatch.setattr(object_names, "describe", counted)
    source = PARTICLES.replace("double s = work(all, 90);", "double near[90]; weights = near; double s = work(all, 90);")
    stopped = trace_objects(tmp_path, logger, source, "gcc", "-g -O0")
    assert any(o.kind == "stack" for o in stopped.found.objects)
    assert set(described.values()) == {1}


GETS = """
#include <unistd.h>
static long table[512];
__attribute__((noipa)) static void put(long *to, long v) { *to = v; }
__attribute__((noinline)) double work(long *known, long n) {
  long *fresh = sbrk(1 << 16);
  for (long k = 0; k < n; k++) { long *to = k & 1 ? known : fresh; to[k] = k; }
  return (double)fresh[2] + (double)known[3]; }
int main(void) { double s = work(table, 512); put(table, 1); return s > 9; }
"""


def test_memory_that_the_call_gets_is_an_object_beside_others(tmp_path: Path, logger: Path) -> None:
    """metis: what a reference touched beside a heap that grew in the call made all that it touches unknown."""
    stopped = trace_objects(tmp_path, logger, GETS, "gcc", "-g -O1 -fno-if-conversion")
    table, gets = stopped.object("table"), stopped.object("memory that the call gets")
    assert (gets.kind, gets.life) == ("mapped", "born")
    both = {stopped.found.objects.index(table), stopped.found.objects.index(gets)}
    touched = [{t.object for t in touches} for touches in stopped.found.touches]
    assert both in touched
