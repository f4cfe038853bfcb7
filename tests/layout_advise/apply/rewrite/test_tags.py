"""``struct T *`` for pointers to ``T``, where only a typedef names that record: the tag is another type, never defined."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.rewrite.rewrite import rewrite
from layout_advise.apply.rewrite.target import target
from layout_advise.errors import SourceError
from tests.support.applying.rewritten import SANITIZED, Groups, changed, output, rewritten

HEAD = """#include <stdio.h>
#include <stdlib.h>
typedef struct {
    double x;
    int n;
    struct node *left, *right;
} node;
node *made(double x);
"""
PROGRAM = """
node *made(double x)
{
    node *p = (node *)malloc(sizeof(node));
    p->x = x;
    p->n = 1;
    p->left = p->right = NULL;
    return p;
}
static void put(node *of, double x)
{
    of->n++;
    if (x < of->x) {
        if (of->left)
            put((node *)of->left, x);
        else
            of->left = (struct node *)made(x);
    } else if (of->right != NULL)
        put((node *)of->right, x);
    else
        of->right = (struct node *)made(x);
}
static double sum(const node *p)
{
    struct node *left = p->left;
    return p->x * p->n + (left ? sum((const node *)left) : 0) + (p->right ? sum((const node *)p->right) : 0);
}
static void gone(node *p)
{
    if (!p)
        return;
    gone((node *)p->left);
    gone((node *)p->right);
    free(p);
}
int main(void)
{
    node *top = made(5);
    for (int i = 0; i < 9; i++)
        put(top, i * 37 % 11);
    printf("%g %d\\n", sum(top), top->n);
    gone(top);
}
"""


@pytest.mark.parametrize("groups", [None, [["x"], ["left", "right", "n"]]])
def test_pointers_by_a_tag_that_is_never_defined(groups: Groups | None, tmp_path: Path) -> None:
    new = changed({"p.c": HEAD + PROGRAM}, "node", groups, tmp_path, guard=True)
    assert "    node_ref left" in (new / "p.c").read_text()
    assert output(new, SANITIZED) == output(tmp_path / "old", SANITIZED)


def test_a_tag_that_another_file_defines(tmp_path: Path) -> None:
    other = "struct node { char other; };\nint size(void) { return sizeof(struct node); }\n"
    with pytest.raises(SourceError, match="2 definitions have that name"):
        rewritten({"p.c": HEAD + PROGRAM, "q.c": other}, "node", None, tmp_path)
    units = [parse(tmp_path / name, (), tmp_path) for name in ("p.c", "q.c")]
    record = next(n for top in units[0].declarations for n in top.walk() if n.kind == "STRUCT_DECL" and n.defines)
    done = rewrite(units, record, target(record, [["x"], ["n"], ["left"], ["right"]], ""))
    assert "another record called node" in [refusal.why for refusal in done.refusals]
