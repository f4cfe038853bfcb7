"""Elements that are allocated one by one lie in a pool, where numbers stand for pointers; what uses neighbours is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.applying.rewritten import SANITIZED, WARNINGS, Groups, changed, output, rewritten
from tests.support.compilers import needs_clang

HEAD = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct node node;
struct node { int key; struct node *left, *right; char name[6]; double weight; };
"""
TREE = (
    HEAD
    + """
node *made(int key);
double sum(const node *n);
static node *root;

static node **place(node **from, int key)
{
    while (*from && (*from)->key != key)
        from = key < (*from)->key ? &(*from)->left : &(*from)->right;
    return from;
}

static void gone(node *n)
{
    if (n == NULL)
        return;
    gone(n->left);
    gone(n->right);
    free(n);
}

int main(void)
{
    unsigned next = 7;
    for (int k = 0; k < 500; k++) {
        next = next * 1103515245u + 12345u;
        node **at = place(&root, next >> 20);
        if (!*at)
            *at = made(next >> 20);
        (*at)->weight += 1.5;
    }
    printf("%g\\n", sum(root));
    node *const left = root->left;
    root->left = NULL;
    gone(left);
    node *kept = calloc(1, sizeof *kept), copy = *root;
    if (!kept)
        return 1;
    *kept = copy;
    memset(root, 0, sizeof *root);
    root->weight = 0.25;
    for (int k = 0; k < 400; k++)
        *place(&root->right, 5000 + k) = made(5000 + k);
    printf("%g %g %d %s %d\\n", sum(root), kept->weight, kept->key == copy.key, kept->name, kept == root);
    gone(kept->right);
    free(kept);
    gone(root);
    return 0;
}
"""
)
OTHER = (
    HEAD.replace("#include <stdio.h>\n", "")
    + """
node *made(int key);
double sum(const node *n);

node *made(int key)
{
    node *n = (node *)malloc(sizeof(node));
    if (n == NULL)
        abort();
    n->key = key;
    n->left = n->right = NULL;
    strcpy(n->name, "node");
    n->weight = key * 0.5;
    return n;
}

double sum(const node *n)
{
    return n ? n->weight + sum(n->left) + sum(n->right) : 0;
}
"""
)
HEADER = HEAD + "node *made(int key);\ndouble sum(const node *n);\n"
BODIES = {
    "main.c": '#include "node.h"\n' + TREE.partition("double sum(const node *n);\n")[2],
    "node.c": '#include "node.h"\n' + OTHER.partition("double sum(const node *n);\n")[2],
    "node.h": "#ifndef NODE_H\n#define NODE_H\n" + HEADER + "#endif\n",
}
GROUPS: list[Groups] = [[["key", "left", "right"]], [["key", "left", "right", "name", "weight"]], [["weight"], ["key"]]]


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
@pytest.mark.parametrize("groups", GROUPS)
def test_a_tree_of_two_files(groups: Groups, compiler: str, tmp_path: Path) -> None:
    own = SANITIZED if compiler == "gcc" else WARNINGS
    new = changed(BODIES, "node", groups, tmp_path, pooled=True)
    text = (new / "node.h").read_text()
    assert re.search(r"typedef struct node_ref \{\n    uint32_t at;", text)
    assert "malloc" not in (new / "node.c").read_text()
    assert output(new, own, compiler) == output(tmp_path / "old", own, compiler)


def test_links_that_are_declared_together_are_moved_apart(tmp_path: Path) -> None:
    """Without a pool too: the second one was left a record in itself."""
    new = changed(BODIES, "node", [["weight"], ["key"]], tmp_path)
    assert output(new, SANITIZED) == output(tmp_path / "old", SANITIZED)


def test_what_was_given_back_is_taken_again(tmp_path: Path) -> None:
    body = """
int main(void)
{
    long total = 0;
    for (int k = 0; k < 3000000; k++) {
        node *n = malloc(sizeof *n), *m = malloc(sizeof *m);
        if (!n || !m)
            return 1;
        n->key = k;
        m->left = n;
        total += m->left->key;
        free(n);
        free(m);
    }
    printf("%ld\\n", total);
    return 0;
}
"""
    new = changed({"app.c": HEAD + body}, "node", [["key", "left"]], tmp_path, pooled=True)
    run = output(new, (*WARNINGS, "-O2"))
    assert run == output(tmp_path / "old", (*WARNINGS, "-O2"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("node *p = malloc(3 * sizeof *p);", "an array of struct node, of which the pool has none"),
        ("node *p = malloc(sizeof *p); p++;", "as neighbours"),
        ("node *p = malloc(sizeof *p), *q = p + 1; q = p;", "as neighbours"),
        ("node *p = malloc(sizeof *p); p[1].key = 3;", "an array of struct node, of which the pool has none"),
        ("node one, *p = &one; p->key = 3;", "as neighbours"),
        ("node *p = given(sizeof *p);", "which is no element of the pool"),
        ("node *p = malloc(sizeof *p); p = realloc(p, 2 * sizeof *p);", "as neighbours"),
        ("node table[3] = {0}; node *p = table;", "as neighbours"),
        ("node *p = malloc(sizeof *p); pthread_t t; pthread_create(&t, 0, run, 0);", "threads would share the pool"),
    ],
)
def test_what_a_pool_does_not_serve_is_refused(line: str, why: str, tmp_path: Path) -> None:
    head = f"{HEAD}#include <pthread.h>\nvoid *given(size_t n);\nvoid *run(void *);\n"
    source = f"{head}int main(void) {{ {line} return p == NULL; }}\n"
    done = rewritten({"app.c": source}, "node", [["key"]], tmp_path, pooled=True)
    assert why in " ".join(refusal.why for refusal in done.refusals), done.refusals
    assert {refusal.line for refusal in done.refusals} == {source.count("\n")}
