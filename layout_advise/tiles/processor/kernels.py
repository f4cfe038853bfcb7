"""Calibration kernels as C: one walk over a cluster in every tile.

Each element's last member becomes a quarter of itself and a part of the sum of the others. In a tile each member is an array
of as many numbers as the tile has elements; the last tile of a stream is as long as there are elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.tiles.processor.shapes import WHOLE

_HEAD = """#include <stddef.h>
#include <stdint.h>
#include <time.h>
typedef {real} real;
enum {{ M = {members} }};
"""

_TAIL = """
typedef void walk(real *r, size_t n, size_t pitch, const uint32_t *starts, size_t runs, size_t trips);
static walk *const walks[] = {{ {walks} }};

/* ns of this thread for so many calls; the runs of one, from starts[at] on, follow those of the call before */
__attribute__((visibility("default")))
double la_calls(int which, real *r, size_t n, size_t pitch, const uint32_t *starts, size_t at, size_t runs, size_t given,
                size_t trips, size_t calls)
{{
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (size_t c = 0; c < calls; c++) {{
        walks[which](r, n, pitch, starts + at, runs, trips);
        at += runs;
        if (at + runs > given)
            at = 0;
    }}
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return 1e9 * (to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec);
}}
"""

DECLARATION = """
double la_calls(int which, void *r, size_t n, size_t pitch, const uint32_t *starts, size_t at, size_t runs, size_t given,
                size_t trips, size_t calls);
"""
"""``which`` is twice the number of the tile, and 1 more for runs; ``pitch`` the distance of the arrays of members."""


def source(members: int, size: int, tiles: Sequence[int]) -> str:
    """The walks over records of so many members of ``size`` bytes each: a stream and runs for each tile, and
    :data:`DECLARATION`."""
    head = _HEAD.format(real="float" if size == 4 else "double", members=members)
    walks = [f"{form}_{tile}" for tile in tiles for form in ("stream", "runs")]
    texts = [text for tile in tiles for text in (_stream(members, tile), _runs(members, tile))]
    return "\n".join([head, *texts, _TAIL.format(walks=", ".join(walks))])


def _function(name: str, body: str) -> str:
    given = "real *r, size_t n, size_t pitch, const uint32_t *starts, size_t runs, size_t trips"
    return f"__attribute__((noinline)) static void {name}({given})\n{{\n{body}\n}}"


def _step(members: int, place: str) -> str:
    """The statement for an element; ``place`` is that of its member ``K``."""
    own = [place.replace("K", str(k)) for k in range(members)]
    return f"{own[-1]} = {own[-1]} * (real)0.25 + ({' + '.join(own[:-1])}) * (real)0.125;"


def _stream(members: int, tile: int) -> str:
    loop = "#pragma GCC ivdep\n    for (size_t l = 0; l < {bound}; l++)\n        {step}"
    if tile in (1, WHOLE):
        step = _step(members, "r[l * M + K]" if tile == 1 else "r[K * pitch + l]")
        return _function(f"stream_{tile}", loop.format(bound="n", step=step))
    inner = loop.format(bound=f"{tile}", step=_step(members, f"t[K * {tile} + l]"))
    rest = loop.format(bound="n - b", step=_step(members, f"t[K * {tile} + l]"))
    whole = f"    for (; b + {tile} <= n; b += {tile}) {{\n    real *t = r + b * M;\n{inner}\n    }}"
    return _function(f"stream_{tile}", f"    size_t b = 0;\n{whole}\n    real *t = r + b * M;\n{rest}")


def _runs(members: int, tile: int) -> str:
    places = {1: "r[i * M + K]", WHOLE: "r[K * pitch + i]"}
    blocked = f"r[(i / {tile}) * ({tile} * M) + K * {tile} + i % {tile}]"
    step = _step(members, places.get(tile, blocked))
    inner = f"#pragma GCC ivdep\n    for (size_t i = starts[k]; i < starts[k] + trips; i++)\n        {step}"
    return _function(f"runs_{tile}", f"    for (size_t k = 0; k < runs; k++) {{\n{inner}\n    }}")
