"""C++ whose elements are allocated one by one, in a pool, where numbers stand for pointers to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.applying.rewritten import CXX_SANITIZED, CXX_WARNINGS, Groups, changed, output, rewritten
from tests.support.compilers import needs_clang

HEADER = """#pragma once
#include <cstdio>
namespace own {
class Tree {
public:
    struct Node {
        int key;
        Node *left = nullptr, *right = nullptr;
        char name[6];
        double weight;
        Node(int k = 0, double w = 0) : key(k), weight(w) { name[0] = 'n'; name[1] = 0; }
        bool is_leaf() const { return !left && right == nullptr; }
        Node *child(bool on_left) { return on_left ? left : right; }
        Node *self() { return this; }
        double heavier(const Node &than) const { return weight > than.weight ? weight : than.weight; }
        int depth() const;
    };
    Node *place(int key);
    void clear() { gone(root); root = nullptr; }
    const Node *top() const { return root; }
    Node *root = nullptr;
private:
    static void gone(Node *n);
};
double sum(const Tree::Node *n);
}
"""
NODE = """#include "tree.hpp"
using own::Tree;
int Tree::Node::depth() const
{
    const int l = left ? left->depth() : 0, r = right ? right->depth() : 0;
    return 1 + (l > r ? l : r);
}
Tree::Node *Tree::place(int key)
{
    Node **from = &root;
    while (*from && (*from)->key != key)
        from = key < (*from)->key ? &(*from)->left : &(*from)->right;
    if (*from == nullptr)
        *from = new Node(key, key * 0.5);
    return *from;
}
void Tree::gone(Node *n)
{
    if (n == nullptr)
        return;
    gone(n->left);
    gone(n->right);
    delete n;
}
double own::sum(const Tree::Node *n) { return n ? n->weight + sum(n->left) + sum(n->right) : 0; }
"""
MAIN = """#include "tree.hpp"
#include <utility>
#include <vector>
using own::Tree;
static double total(const std::vector<Tree::Node *> &all)
{
    double t = 0;
    for (const Tree::Node *one : all)
        t += one->weight + one->is_leaf();
    for (auto *one : all)
        t += one->self() == one;
    return t;
}
static void raise(Tree::Node &n, double by) { n.weight += by; }
int main()
{
    Tree tree;
    std::vector<Tree::Node *> kept;
    unsigned next = 7;
    for (int k = 0; k < 500; k++) {
        next = next * 1103515245u + 12345u;
        Tree::Node *at = tree.place(next >> 20);
        at->weight += 1.5;
        raise(*at, 0.25);
        if (k % 7 == 0)
            kept.push_back(at);
    }
    Tree::Node &first = *tree.root;
    std::swap(first.left, first.right);
    const Tree::Node *const whole = tree.top();
    std::printf("%g %g %d %s\\n", own::sum(whole), total(kept), whole->depth(), first.name);
    std::printf("%g %d\\n", first.heavier(*kept[3]), first.child(true) != nullptr);
    *kept[1] = *kept[2];
    std::printf("%d %d %d\\n", kept[1]->key == kept[2]->key, kept[1] == kept[2], (*kept[1]).is_leaf());
    kept[1]->left = kept[1]->right = nullptr;
    tree.root = new Tree::Node{3};
    tree.root->left = new Tree::Node();
    std::printf("%g %d\\n", own::sum(tree.top()), tree.root->left->key);
    tree.clear();
    std::printf("%d\\n", tree.top() == nullptr);
    return 0;
}
"""
FILES = {"tree.hpp": HEADER, "node.cpp": NODE, "main.cpp": MAIN}
GROUPS: list[Groups] = [[["key", "left", "right"]], [["key", "left", "right", "name", "weight"]], [["weight"], ["key"]]]


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
@pytest.mark.parametrize("groups", GROUPS)
def test_a_tree_of_two_files(groups: Groups, compiler: str, tmp_path: Path) -> None:
    new = changed(FILES, "own::Tree::Node", groups, tmp_path, pooled=True)
    assert "static_cast<std::size_t>(at)" in (new / "tree.hpp").read_text()
    flags = (*CXX_SANITIZED, "-fno-sanitize=leak") if compiler == "gcc" else CXX_WARNINGS
    assert output(new, flags, compiler) == output(tmp_path / "old", ("-std=c++11", "-O1"), compiler)


NODES = """#include <cstdio>
#include <cstdlib>
struct Node { int key; Node *next; double weight; };
void put(Node *n) { std::printf("%d %g\\n", n->key, n->weight); }
"""


def test_what_was_given_back_is_taken_again(tmp_path: Path) -> None:
    body = """
int main()
{
    long total = 0;
    for (int k = 0; k < 2000000; k++) {
        Node *n = new Node, *m = (Node *)malloc(sizeof(Node));
        n->key = k;
        m->next = n;
        total += m->next->key;
        delete n;
        free(m);
    }
    Node *last = static_cast<Node *>(std::calloc(1, sizeof(Node)));
    put(last);
    std::printf("%ld\\n", total);
    return 0;
}
"""
    new = changed({"app.cpp": NODES + body}, "Node", [["key", "next"]], tmp_path, pooled=True)
    flags = (*CXX_WARNINGS, "-O2")
    assert output(new, flags) == output(tmp_path / "old", flags)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Node *p = new Node[3]; put(p);", "an array of Node, of which the pool has none"),
        ("Node *p = new Node; p++; put(p);", "as neighbours"),
        ("Node *p = new Node, *q = p + 1; put(q);", "as neighbours"),
        ("Node *p = new Node; put(&p[0]);", "as neighbours"),
        ('Node *p = new Node, *q = new Node; std::printf("%d", p < q);', "compared by their places"),
        ("Node one; put(&one);", "one is an element that is a variable"),
        ("Node all[3]; put(all);", "all is an array of Node"),
        ("std::vector<Node> all(3); put(&all[0]);", "a vector of Node"),
        ("Node *p = (Node *)malloc(3 * sizeof(Node)); put(p);", "of which the pool gives one at a time"),
        ("std::unique_ptr<Node> p(new Node); put(p.get());", "a template other than std::vector holds Node"),
        ("Node *p = new Node; std::thread t(put, p); t.join();", "threads would share the pool"),
    ],
)
def test_what_a_pool_does_not_serve_is_refused(line: str, why: str, tmp_path: Path) -> None:
    source = f"#include <memory>\n#include <thread>\n#include <vector>\n{NODES}int main() {{ {line} return 0; }}\n"
    done = rewritten({"app.cpp": source}, "Node", [["key"]], tmp_path, pooled=True)
    assert why in " ".join(refusal.why for refusal in done.refusals), done.refusals
    assert source.count("\n") in {refusal.line for refusal in done.refusals}
