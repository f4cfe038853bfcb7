"""Random C programs over an array of records, for property tests of ``apply``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

TYPES = {"char": "signed char {}", "short": "short {}", "unsigned": "unsigned {}", "long": "long {}", "float": "float {}",
         "double": "double {}", "ints": "unsigned {}[3]", "bytes": "unsigned char {}[5]",
         "pair": "struct pair {}"}  # fmt: skip
NAMES = ("a", "b", "c", "d", "e", "f")
ALLOCATIONS = (
    "struct item *p = malloc((size_t)n * sizeof *p);\n    memset(p, 0, (size_t)n * sizeof *p);",
    "struct item *p = calloc((size_t)n, sizeof(struct item));",
    "struct item *p = grown((size_t)n * sizeof(struct item));\n    memset(p, 0, sizeof(struct item) * (size_t)n);",
    "struct item *p = table;",
    "struct item *p = (struct item *)calloc(1, sizeof *p);\n    p = realloc(p, (size_t)n * sizeof *p);\n"
    "    for (long i = 0; i < n; i++)\n        memset(p + i, 0, sizeof(struct item));",
)


@dataclass(frozen=True)
class RecordProgram:
    """Source, and a partition of the record's members, some of it in blocks of so many elements; ``apart`` are members that
    are arrays, each number of which gets an array of its own."""

    text: str
    groups: tuple[tuple[str, ...], ...]
    blocks: tuple[int, ...]
    apart: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The layout's parts beside the groups, as ``changed`` takes them."""
        return {"blocks": self.blocks, "apart": self.apart}


@st.composite
def programs(draw: DrawFn) -> RecordProgram:
    """A program that fills an array, works on it in random steps, and prints all of it."""
    names = NAMES[: draw(st.integers(2, len(NAMES)))]
    kinds = {name: draw(st.sampled_from(sorted(TYPES))) for name in names}
    # joined declarations, as people write them
    fields = "".join(f"    {TYPES[kind].format(name)};\n" for name, kind in kinds.items())
    scalars = [_scalar(name, kind) for name, kind in kinds.items()]
    steps = [_step(draw, scalars) for _ in range(draw(st.integers(1, 8)))]
    order = draw(st.permutations(names))
    cuts = sorted(draw(st.sets(st.integers(1, len(names) - 1), max_size=3)))
    groups = tuple(tuple(order[a:b]) for a, b in zip((0, *cuts), (*cuts, len(names)), strict=True))
    blocks = tuple(draw(st.sampled_from((0, 0, 2, 3, 4, 8))) for _ in groups)
    text = _source(fields, scalars, steps, draw(st.integers(1, 17)), draw(st.sampled_from(ALLOCATIONS)))
    alone = [group[0] for group in groups if len(group) == 1 and kinds[group[0]] in ("ints", "bytes")]
    return RecordProgram(text, groups, blocks, tuple(name for name in alone if draw(st.booleans())))


def _scalar(name: str, kind: str) -> str:
    return {"ints": f"{name}[k % 3]", "bytes": f"{name}[k % 5]", "pair": f"{name}.v"}.get(kind, name)


def _step(draw: DrawFn, scalars: list[str]) -> str:
    one, two = draw(st.sampled_from(scalars)), draw(st.sampled_from(scalars))
    k, m = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    forms = [
        f"for (long i = 0; i < n; i++)\n        p[i].{one} = (i * {k} + {m}) % 100;",
        f"for (struct item *q = p; q < p + n; q++)\n        q->{one} = (long)(q->{two} + {k}) % 50;",
        f"for (struct item *q = p + n; q-- != p;)\n        q->{one} = ({k} + (q - p)) % 90;",
        f"for (long i = 0; i < n; i++)\n        (*(p + i)).{one} = (long)(p[n - 1 - i].{two}) % 60 + {m};",
        f"p[{k} % n] = p[{m} % n];",
        f"{{\n        struct item t = p[{k} % n];\n        t.{one} = {m};\n        p[{k} % n] = p[{m} % n];\n"
        f"        p[{m} % n] = t;\n    }}",
        f"touch(&p[{k} % n], n - {k} % n, {m});",
        f"touch(p + {m} % n, 1, {k});",
        f"memmove(&p[{k} % n], &p[{m} % n], sizeof *p);",
        "if (n > 1)\n        memmove(p, p + 1, (size_t)(n - 1) * sizeof *p);",
        f"memset(&p[{k} % n], 0, sizeof p[0]);",
        f"{{\n        struct item t = {{0}}, *q = NULL;\n        t.{one} = {k};\n        touch(&t, 1, {m});\n"
        f"        if (!q)\n            q = &p[{m} % n];\n        *q = t;\n    }}",
        f"{{\n        struct item *q = found(p, n, {k});\n        if (q != NULL && q >= p)\n            q++->{one} = {m};\n"
        "        printf(\"%ld\\n\", q ? (long)(q - p) : -1L);\n    }",
        f"PUT(&p[{k} % n], {m});\n    if (IS({m}))\n        PUT(p, {k});",
        f"{{\n        struct item *all[2] = {{p, p + n - 1}}, **at = all;\n        (*at)->{one} = {k};\n"
        f"        at[1]->{two} = {m};\n    }}",
    ]  # fmt: skip
    return draw(st.sampled_from(forms))


def _source(fields: str, scalars: list[str], steps: list[str], count: int, allocation: str) -> str:
    first, last = scalars[0], scalars[-1]
    show = "\n".join(
        f"        for (long k = 0; k < 15; k++)\n            sum = sum * 3.0 + (double)p[i].{name};" for name in scalars
    )
    body = "\n    ".join(steps)
    release = "" if "table" in allocation else "    free(p);\n" if count % 2 else "    p = gone(p);\n    return p != NULL;\n"
    return f"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {{
    double u;
    int v;
}};

/* a record */
struct item {{
{fields}}};

#define PUT(at, by) ((at)->{last} = (by))
#define IS(by) (p && p[(by) % n].{first} > (by))

static struct item table[{count}];

static void *grown(size_t bytes)
{{
    return malloc(bytes);
}}

static void *gone(void *memory)
{{
    free(memory);
    return NULL;
}}

static void touch(struct item *q, long n, int by)
{{
    for (long k = 0; k < n; k++, q++)
        q->{last} = (long)(q->{first} + by) % 70;
}}

static struct item *found(struct item *const from, long n, int value)
{{
    for (long k = 0; k < n; k++)
        if ((long)from[k].{first} % 10 == value)
            return from + k;
    return NULL;
}}

int main(void)
{{
    const long n = {count};
    const long k = 1;
    {allocation}
    {body}
    (void)k, (void)table, (void)grown, (void)gone, (void)touch, (void)found;
    for (long i = 0; i < n; i++) {{
        double sum = 0.0;
{show}
        printf("%.17g\\n", sum);
    }}
{release}}}
"""
