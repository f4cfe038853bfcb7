"""Functions that go along lists of records: summed, reversed, merged, with pointers that are stored and compared."""

from __future__ import annotations

WALKED = """
struct node { double key, other; struct node *next, *back; };
double kernel(struct node *first, struct node *outside, double *out)
{
    double sum = 0;
    for (struct node *p = first; p; p = p->next) {
        sum = sum * 0.5 + p->key;
        if (p == outside) sum += 7;
    }
    *out = sum;
    return sum;
}"""

REVERSED = """
struct node { double key, other; struct node *next, *back; };
double kernel(struct node *first, struct node *outside, double *out)
{
    struct node *before = 0, *p = first;
    while (p) {
        struct node *next = p->next;
        p->next = before;
        p->back = next;
        before = p;
        p = next;
    }
    double last = before ? before->key : 0;
    *out = last;
    return last;
}"""

MERGED = """
struct node { double key, other; struct node *next, *back; };
double kernel(struct node *a, struct node *b, double *out)
{
    struct node *last = 0;
    double sum = 0;
    while (a && b) {
        struct node *least;
        if (a->key < b->key) { least = a; a = a->next; } else { least = b; b = b->next; }
        if (last) last->next = least;
        least->back = last;
        last = least;
        sum = sum * 0.5 + least->other;
    }
    if (last) last->next = a ? a : b;
    *out = sum;
    return sum;
}"""

MARKED = """
struct node { double key, other; struct node *next, *back; };
double kernel(struct node *first, struct node *outside, double *out)
{
    double sum = 0;
    struct node *p = first;
    for (long k = 0; k < 200; k++) {
        sum = sum * 0.5 + p->key;
        p->back = k % 3 ? p->next : outside;
        struct node *next = p->next;
        if (next == outside) next = first;
        p = next;
    }
    *out = sum;
    return sum;
}"""
