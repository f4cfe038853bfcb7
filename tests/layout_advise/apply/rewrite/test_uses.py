"""All uses that are known are rewritten so that the program prints the same; others are refused with file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.rewrite.target import target
from layout_advise.errors import SourceError
from tests.support.applying.rewritten import SANITIZED, WARNINGS, Groups, changed, output, rewritten
from tests.support.compilers import needs_clang

HEAD = """#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct item { double x, y; int c[3]; char name[8]; struct item *next; };
typedef struct item *items;
"""
PROGRAM = (
    HEAD
    + """#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define N 6
#define SAME(a) a
static struct item table[N]; /* stays */
static const struct item zero = {0};

static void *checked(void *memory)
{
    if (memory == NULL)
        exit(1);
    return memory;
}

static void released(void *memory, int count)
{
    if (memory != NULL && count > 0)
        free(memory);
}

static void *gone(void *memory)
{
    if (memory)
        free(memory);
    return (NULL);
}

static items second(items p)
{
    return(p + 1);
}

static double *x_of(items p, long i)
{
    return(&p[i].x);
}

static void fill(struct item *restrict p, const struct item *q, int n)
{
    for (items r = p; r != p + n; ++r) {
        r->x = MAX(r - p, q[N - 1].y);
        r->next = r > p ? r - 1 : NULL;
        snprintf(r->name, sizeof r->name, "i%d", (int)(r - p));
    }
}

static struct item made(double x)
{
    return (struct item){x, 2.0, {1, 2, 3}, "made", NULL};
}

static double sum(const struct item *p)
{
    double total = 0.0;
    for (; p; p = p->next)
        total += p->x + p->c[1];
    return total;
}

int main(void)
{
    struct item *a = checked(malloc(N * sizeof *a)), *b = NULL, t = made(4.0);
    memset(a, 0, N * sizeof(struct item));
    fill(a, table, N);
    b = calloc(N, sizeof *b);
    memcpy(b, a, N * sizeof *a);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++)
            (&a[i])->c[k] = b[i].c[k] + i * k;
    a[2] = t;
    second(a)->y = 1.0 + SAME(a->y);
    t = *(a + 1);
    t.next = NULL;
    b[1] = zero;
    *x_of(a, 3) += 0.5;
    double *const two[] = {&a[0].x, &b[0].y};
    *two[1] = 1.0;
    assert(a[3].x > 0 && a != NULL);
    a = realloc(a, 2 * N * sizeof *a);
    for (int i = N; i < 2 * N; i++)
        a[i] = a[i - N];
    fill(a, table, 2 * N);
    if (a && b && !(a == b) && a != NULL)
        printf("%g %g %zu %zu\\n", sum(&a[N - 1]), sum(&t), sizeof a->c, sizeof table / sizeof table[0]);
    items end = a + 2 * N, p = a;
    while (p < end)
        printf("%g %g %s %d\\n", p->x, p->y, p->name, p->c[2]), p++;
    p = end;
    do
        p -= 2;
    while (p > a);
    printf("%ld\\n", (long)(end - p));
    released(b, N);
    a = gone(a);
    printf("%d\\n", a == NULL);
}
"""
)
LAYOUTS: list[Groups | None] = [None, [["x", "next"]], [["c", "x"], ["name"]], [["name", "next", "c", "y", "x"]]]


@pytest.mark.parametrize("groups", LAYOUTS)
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
def test_all_known_uses(groups: Groups | None, compiler: str, tmp_path: Path) -> None:
    new = changed({"p.c": PROGRAM}, "item", groups, tmp_path, guard=True)
    assert output(new, compiler=compiler) == output(tmp_path / "old", compiler=compiler)


@pytest.mark.slow
@pytest.mark.parametrize("groups", LAYOUTS)
def test_all_known_uses_are_clean_under_sanitizers(groups: Groups | None, tmp_path: Path) -> None:
    new = changed({"p.c": PROGRAM}, "item", groups, tmp_path)
    assert output(new, SANITIZED) == output(tmp_path / "old", SANITIZED)


def test_lines_without_uses_stay(tmp_path: Path) -> None:
    new = (changed({"p.c": PROGRAM}, "item", None, tmp_path) / "p.c").read_text()
    kept = [
        "static struct item table[N]; /* stays */",
        "#define MAX(a, b) ((a) > (b) ? (a) : (b))",
        "struct item { double x",
    ]
    assert all(line in new for line in kept)
    assert "fill(item_ref p, item_ref q, int n)" in new


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("void f(struct item *p) { double *q = &p->x; q[1] = 2.0; }", "the address of member x"),
        ("void f(struct item *p, double *q) { memcpy(q, p, sizeof *p); }", "memcpy takes struct item as bytes"),
        ("void f(struct item *p) { memcpy(&p->x, &p->y, 16); }", "the address of member x"),
        ("void f(struct item *p) { memset(p->name, 0, 12); }", "memset may go beyond member name"),
        ("union either { struct item i; char bytes[80]; };", "it is part of a union"),
        ("char *f(struct item *p) { return (char *)p; }", "becomes char *"),
        ("void *g(items, int); items f(items p) { return g(p, sizeof *p); }", "of how many elements is not known"),
        ("void *g(long); struct item *f(void) { return g(3 * sizeof(struct item)); }", "of how many elements is not known"),
        ("struct item *f(void *p) { return p; }", "of how many elements is not known"),
        ("struct item *f(long n) { return malloc(rand() * sizeof(struct item) + n); }", "of how many elements is not known"),
        ('struct item known[2] = {{1.0, 2.0, {0}, "a", NULL}};', "an array with an initialiser"),
        ("void f(struct item *p, int (*c)(const void *, const void *)) { qsort(p, 2, 8, c); }", "qsort is given elements"),
        ('void f(struct item *p) { printf("%p", (void *)p); }', "printf is given elements"),
        ("void f(volatile struct item *p) { p->x = 1.0; }", "p is volatile"),
        ("void g(double *); void f(struct item *p) { g(&p->x); }", "the address of member x"),
        ("unsigned long f(struct item *p) { return (unsigned long)p; }", "becomes unsigned long"),
    ],
)  # fmt: skip
def test_what_is_refused(line: str, why: str, tmp_path: Path) -> None:
    text = HEAD + line + "\n"
    done = rewritten({"p.c": text}, "item", None, tmp_path)
    assert done.texts == {}
    assert [refusal.file.name for refusal in done.refusals] == ["p.c"] * len(done.refusals)
    assert any(why in refusal.why and refusal.line >= 7 for refusal in done.refusals), done.refusals


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("void *made(int n);\nvoid g(void) { made(3); }\n", "made is declared with other types in another file"),
        ("extern void *all;\nvoid *g(void) { return all; }\n", "all is declared with other types in another file"),
        ("struct item { int other; };\nint g(struct item *p) { return p->other; }\n", "another definition of item"),
    ],
)
def test_files_that_see_something_else(other: str, why: str, tmp_path: Path) -> None:
    own = HEAD + "struct item *all;\nstruct item *made(int n) { return calloc(n, sizeof(struct item)); }\n"
    done = rewritten({"p.c": own, "q.c": other}, "item", None, tmp_path)
    assert done.texts == {}
    assert why in [refusal.why for refusal in done.refusals]


def test_declarations_that_say_the_same_in_other_words(tmp_path: Path) -> None:
    files = {
        "item.h": HEAD,
        "p.c": '#include "item.h"\nstruct item all[3];\nstruct item *made() { return all; }\n',
        "q.c": '#include "item.h"\ntypedef struct item thing;\nextern thing all[3];\nthing *made(void);\n'
        'int main(void) { made()->x = 2.0; printf("%g\\n", all[0].x); }\n',
    }
    new = changed(files, "item", None, tmp_path)
    assert output(new, ["-std=c11"]) == output(tmp_path / "old", ["-std=c11"]) == "2\n"


BLOCKS: list[tuple[Groups, tuple[int, ...]]] = [
    ([["x", "y", "c", "name", "next"]], (4,)),
    ([["x", "y"], ["c", "name"]], (8, 0)),
    ([["x", "next"], ["y", "c"]], (2, 3)),
]


@pytest.mark.parametrize(("groups", "blocks"), BLOCKS)
def test_all_known_uses_in_blocks(groups: Groups, blocks: tuple[int, ...], tmp_path: Path) -> None:
    new = changed({"p.c": PROGRAM}, "item", groups, tmp_path, guard=True, blocks=blocks)
    assert output(new) == output(tmp_path / "old")


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "blocks"), BLOCKS)
def test_blocks_are_clean_under_sanitizers(groups: Groups, blocks: tuple[int, ...], tmp_path: Path) -> None:
    new = changed({"p.c": PROGRAM}, "item", groups, tmp_path, blocks=blocks)
    assert output(new, SANITIZED) == output(tmp_path / "old", SANITIZED)


def test_a_block_is_an_array_for_each_member(tmp_path: Path) -> None:
    """In a block all of a member come one after another; the last block is as long as there are elements."""
    text = (
        "#include <stdio.h>\nstruct item { float a; short b; };\nstatic struct item all[6];\nint main(void)\n{\n"
        "    struct item *p = all;\n    for (int i = 0; i < 6; i++)\n"
        "        p[i].a = p[i].b; /* shown */\n}\n"
    )
    new = changed({"p.c": text}, "item", [["a", "b"]], tmp_path, blocks=(4,))
    shown = 'printf("%d %d ", (int)((char *)item_a(p, i) - p.base), (int)((char *)item_b(p, i) - p.base));'
    program = re.sub(r"\(\*item_a\(p, i\)\) = .*", shown.replace("\\", r"\\"), (new / "p.c").read_text())
    (new / "p.c").write_text(program)
    assert output(new) == "0 16 4 18 8 20 12 22 32 40 36 42 "


SORTING = (
    HEAD
    + """static int by_x(const void *one, const void *other)
{
    const struct item *a = (const struct item *)one, *b = other;
    return (a->x > b->x) - (a->x < b->x);
}
static int by_c(const void *one, const void *other)
{
    return ((struct item *)one)->c[1] - (*(const struct item *)other).c[1];
}
int main(void)
{
    struct item *p = calloc(9, sizeof *p);
    for (int i = 0; i < 9; i++) {
        p[i].x = i * 37 % 10;
        p[i].c[1] = i * 5 % 7;
        snprintf(p[i].name, sizeof p[i].name, "n%d", (signed char)i);
    }
    qsort(p, 9, sizeof *p, by_x);
    for (int i = 0; i < 9; i++)
        printf("%g %d %s\\n", p[i].x, p[i].c[1], p[i].name);
    qsort(p + 2, 5, sizeof(struct item), &by_c);
    qsort(p, 0, sizeof(struct item), by_x);
    for (int i = 0; i < 9; i++)
        printf("%g %d %s\\n", p[i].x, p[i].c[1], p[i].name);
    free(p);
}
"""
)


@pytest.mark.parametrize(("groups", "blocks"), [(None, ()), ([["next", "x", "c"]], (4,)), ([["name", "c"]], ())])
def test_elements_are_sorted(groups: Groups | None, blocks: tuple[int, ...], tmp_path: Path) -> None:
    new = changed({"p.c": SORTING}, "item", groups, tmp_path, guard=True, blocks=blocks)
    assert output(new) == output(tmp_path / "old")


@pytest.mark.slow
def test_sorting_is_clean_under_sanitizers(tmp_path: Path) -> None:
    new = changed({"p.c": SORTING}, "item", None, tmp_path)
    assert output(new, SANITIZED) == output(tmp_path / "old", SANITIZED)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("free(p);", "free(p); by_c(&zero, &zero);"), "what qsort compares with is not a function for elements alone"),
        (("free(p);", "free(p); qsort(all, 2, sizeof *all, by_x);"), "what qsort compares with is not"),
        (("return ((struct", "one = (const char *)one + 1;\n    return ((struct"), "of how many elements is not known"),
    ],
)
def test_functions_that_compare_something_else(change: tuple[str, str], why: str, tmp_path: Path) -> None:
    text = SORTING.replace("int main", "static int all[2], zero;\nint main").replace(*change)
    done = rewritten({"p.c": text}, "item", None, tmp_path)
    assert done.texts == {}
    assert any(why in refusal.why for refusal in done.refusals), done.refusals


@pytest.mark.parametrize(("groups", "size"), [([["x", "n", "c"]], 16), ([["x", "n"], ["c"]], 24), ([["x", "n"]], 24)])
def test_members_by_falling_size_leave_no_holes(groups: Groups, size: int, tmp_path: Path) -> None:
    """Alone, with another group, and beside the rest: in the order in which they are named."""
    text = (
        "#include <stdio.h>\n#include <stdlib.h>\nstruct item { char c; double x; int n; };\nint main(void)\n{\n"
        "    struct item *p = malloc(9 * sizeof *p);\n    for (int i = 0; i < 9; i++)\n"
        "        p[i] = (struct item){(char)i, i * 0.5, 3 * i};\n    double sum = 0;\n    for (int i = 0; i < 9; i++)\n"
        '        sum += p[i].c + p[i].x * p[i].n;\n    printf("%g\\n", sum);\n    free(p);\n    return 0;\n}\n'
    )
    new = changed({"p.c": text}, "item", groups, tmp_path, guard=True, ordered=True)
    assert f"sizeof(struct item) == {size}" in (new / "p.c").read_text()
    assert output(new) == output(new, SANITIZED) == output(tmp_path / "old")


def test_other_orders_refuse_bytes(tmp_path: Path) -> None:
    text = HEAD + "void f(struct item *p, FILE *to) { fwrite(p, sizeof *p, 3, to); }\n"
    done = rewritten({"p.c": text}, "item", [["y", "x", "c", "name", "next"]], tmp_path)
    assert [(refusal.line, refusal.why) for refusal in done.refusals] == [(7, "fwrite takes struct item as bytes")]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ("union { int a; double b; }; int n;", "a union or a structure without a name"),
        ("struct { int a, b; }; int n;", "a union or a structure without a name"),
        ("int n; double rest[];", "no size"),
    ],
)
def test_records_that_are_refused(record: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=why):
        rewritten({"p.c": f"struct item {{ {record} }};\n"}, "item", None, tmp_path)


def test_a_record_without_a_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text("struct outer {\n    struct { double x; int n; } *all;\n    int k, l;\n};\n")
    unit = parse(tmp_path / "p.c", (), tmp_path)
    record = next(n for top in unit.declarations for n in top.walk() if n.kind == "STRUCT_DECL" and len(n.children) == 2)
    with pytest.raises(SourceError, match=r"cannot rewrite a record without a name: .*p\.c:2"):
        target(record, [["x"], ["n"]], "")


def test_memory_that_is_not_there_gives_no_new_warnings(tmp_path: Path) -> None:
    """gcc at -O2 followed what realloc gives where it fails into the accesses, and warned of them."""
    text = (
        "#include <stdlib.h>\n#include <string.h>\nstruct item { unsigned char a[5], b[5]; };\nint main(void)\n{\n"
        "    struct item *p = calloc(1, sizeof *p);\n    p = realloc(p, 1 * sizeof *p);\n    memset(p, 0, sizeof *p);\n"
        "    p->b[1] = 5;\n    const int sum = p->a[0] + p->b[1] - 5;\n    free(p);\n    return sum;\n}\n"
    )
    new = changed({"p.c": text}, "item", None, tmp_path)
    for level in ("-O1", "-O2", "-O3"):
        assert output(new, (*WARNINGS, level)) == output(tmp_path / "old", (*WARNINGS, level)) == ""


def test_source_that_does_not_parse(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"p\.c does not parse: .*p\.c:2"):
        rewritten({"p.c": "struct item { double x; };\nint f( { }\n"}, "item", None, tmp_path)


def test_headers_in_folders_named_from_the_compilers(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "item.h").write_text("struct item { int a, b; };\n")
    (tmp_path / "p.c").write_text('#include "item.h"\nint a_of(struct item *p) { return p->a; }\n')
    unit = parse(tmp_path / "p.c", ("-Iinclude",), tmp_path)
    assert set(unit.texts) == {tmp_path / "include" / "item.h", tmp_path / "p.c"}


def test_several_units(tmp_path: Path) -> None:
    files = {
        "item.h": "#ifndef ITEM_H\n#define ITEM_H\nstruct item { int a; double b; };\nvoid fill(struct item *p, int n);\n"
        "static inline double b_of(const struct item *p) { return p->b; }\n#endif\n",
        "fill.c": '#include "item.h"\nvoid fill(struct item *p, int n)\n{\n    for (int i = 0; i < n; i++)\n'
        "        p[i] = (struct item){i, 0.5 * i};\n}\n",
        "main.c": '#include "item.h"\n#include <stdio.h>\nstatic struct item all[9];\nint main(void)\n{\n    fill(all, 9);\n'
        '    printf("%g %d\\n", b_of(all + 4), all[8].a);\n}\n',
    }
    new = changed(files, "item", None, tmp_path)
    assert output(new) == output(tmp_path / "old") == "2 8\n"


@pytest.mark.parametrize("groups", [None, [["d", "c"], ["a"]]])
def test_whole_elements_are_written_member_by_member(groups: Groups | None, tmp_path: Path) -> None:
    program = """#include <stdio.h>
#include <stdlib.h>
struct item { char a; double b; short c; float d; };
int main(void)
{
    struct item *p = calloc(7, sizeof *p), back = {0};
    FILE *file = fopen("items", "w+b");
    for (int i = 0; i < 7; i++) {
        p[i].a = 'a' + i;
        p[i].b = i / 3.0;
        p[i].c = -i;
        p[i].d = i * 2.0f;
    }
    if (fwrite(p, sizeof *p, 7, file) != 7 || fseek(file, 2 * 24, SEEK_SET) || fread(&back, sizeof back, 1, file) != 1)
        return 1;
    printf("%c %g %d %g %zu\\n", back.a, back.b, back.c, back.d, fread(p, sizeof(struct item), 9, file));
    printf("%c %g\\n", p[3].a, p[3].d);
    fclose(file);
    free(p);
}
"""
    new = changed({"p.c": program}, "item", groups, tmp_path)
    assert output(new, WARNINGS) == output(tmp_path / "old", WARNINGS)
    assert (new / "items").read_bytes() == (tmp_path / "old" / "items").read_bytes()


def test_headers_of_intrinsics_of_another_version_are_read(tmp_path: Path) -> None:
    """lame: the compiler's ``emmintrin.h`` is of clang 14, and libclang of a later one."""
    text = r"""
#include <emmintrin.h>
#include <stdio.h>
struct p { double x; int n; };
int main(void)
{
    struct p all[3];
    for (int k = 0; k < 3; k++) {
        all[k].x = k;
        all[k].n = 2 * k;
    }
    const __m128i sum = _mm_add_epi32(_mm_set1_epi32(all[1].n), _mm_slli_si128(_mm_set1_epi32(all[2].n), 4));
    printf("%g %d\n", all[2].x, _mm_cvtsi128_si32(_mm_srli_si128(sum, 8)));
    return 0;
}
"""
    new = changed({"app.c": text}, "p", [["x"], ["n"]], tmp_path)
    assert output(new, (*WARNINGS, "-O2")) == output(tmp_path / "old", (*WARNINGS, "-O2"))
