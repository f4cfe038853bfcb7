"""Large arrays in one record are objects of their own, named and typed from the source; unless code runs over several."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tracing.logger_program import Stopped, logger, stop

__all__ = ["logger"]  # a fixture

WORLD = """
#include <stdlib.h>
struct part { double x, v, a, rest[3]; };
struct clock { double now; long beats[64]; };
struct world { int n; struct part p[200]; double t; struct clock clock; float weights[50]; char tail; };
%s
__attribute__((noinline)) double work(struct world *w, double dt) {
  double s = 0;
  for (int i = 0; i < w->n; i++) { w->p[i].x += w->p[i].v * dt; s += w->weights[i %% 50]; w->clock.beats[i & 63]++; }
  w->t += dt;
  return s; }
int main(void) {
  struct world *w = %s;
  w->n = 150;
  return work(w, 0.5) > 1e9; }"""
PARTS = {"p": (9600, "part"), "clock.beats": (512, "long int")}


def found(folder: Path, logger: Path, source: str, compiler: str = "gcc") -> Stopped:
    return stop(folder, logger, source, compiler, "-O1 -g")


@pytest.mark.parametrize(
    ("kept", "where", "name"),
    [("", "calloc(1, sizeof *w)", "w->"), ("static struct world all;", "&all", "all.")],
    ids=["heap", "global"],
)
def test_arrays_in_a_record_have_names_and_types_of_their_own(
    kept: str, where: str, name: str, tmp_path: Path, logger: Path
) -> None:
    stopped = found(tmp_path, logger, WORLD % (kept, where))
    objects = {o.name: o for o in stopped.found.objects}
    for part, (size, kind) in PARTS.items():
        one = objects[f"{name}{part}"]
        assert (one.bytes, one.type.name if one.type else None) == (size, kind)
    assert objects[f"{name}p"].type is not None
    assert stopped.accesses(f"{name}p") == 450
    assert stopped.accesses(f"{name}clock.beats") in (150, 300)
    assert "weights" not in "".join(objects)  # 200 bytes stay with what is around them
    whole = name.rstrip("->.")
    rest = [o for o in stopped.found.objects if o.name == whole]
    assert sum(o.bytes for o in rest) < 400
    assert any(o.type and any(m.name == "t" for m in o.type.members) for o in rest)
    assert not any(stopped.found.mixed(k) for k in range(len(stopped.trace.references)))


OVER_ALL = """
struct pair { double a[100], b[100]; double sum; };
static struct pair all;
__attribute__((noinline)) double work(struct pair *p) {
  double s = 0;
  for (double *d = (double *)p; d < (double *)p + 200; d++) s += *d;
  p->sum = s;
  return s; }
int main(void) { return work(&all) > 1; }"""


def test_what_one_loop_runs_over_stays_one_object(tmp_path: Path, logger: Path) -> None:
    stopped = found(tmp_path, logger, OVER_ALL)
    assert "all" in stopped.names
    assert not any(name.startswith("all.") for name in stopped.names)
    assert stopped.object("all").bytes == 1608


ARRAYS = """
#include <array>
#include <memory>
struct cell { float h, u; };
class Grid {
  double scale = 2.0;
  std::array<cell, 300> cells{};
 public:
  __attribute__((noinline)) float work(int n) {
    float s = 0;
    for (int i = 0; i < n; i++) { cells[i].u += cells[i].h * float(scale); s += cells[i].u; }
    return s; }
};
int main(int argc, char **) { auto g = std::make_unique<Grid>(); return g->work(299 + argc) > 1; }"""


def test_of_a_class(tmp_path: Path, logger: Path) -> None:
    stopped = stop(tmp_path, logger, ARRAYS, "g++", "-O1 -g", "Grid::work")
    (cells,) = [o for o in stopped.found.objects if o.type is not None and o.type.name == "cell"]
    assert cells.name.endswith("cells")
    assert cells.bytes == 2400
