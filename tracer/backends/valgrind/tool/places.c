/* Which addresses of a superblock differ by constants: those need one word of the buffer.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "tool.h"

#define TEMPORARIES 4096 /* of a superblock; those beyond are roots of their own */
#define KNOWN 64u

/* A value of two operands that was computed before: where it is computed again, it is the same root. */
struct known {
    IROp op;
    IRTemp left, right; /* for shifts: the count */
    struct place sum;   /* that root, and what its value is more than that of the operands' roots */
};

static struct place value_of[TEMPORARIES];
static struct known known[KNOWN];
static UInt knowns;

void la_values_begin(const IRTypeEnv *types)
{
    knowns = 0;
    for (Int t = 0; t < TEMPORARIES && t < types->types_used; t++)
        value_of[t] = (struct place){(IRTemp)t, 0};
}

struct place la_place_of(const IRExpr *e)
{
    if (e->tag == Iex_Const)
        return (struct place){IRTemp_INVALID, e->Iex.Const.con->Ico.U64};
    return e->Iex.RdTmp.tmp < TEMPORARIES ? value_of[e->Iex.RdTmp.tmp] : (struct place){e->Iex.RdTmp.tmp, 0};
}

/* `sum` is the value of an operation on two roots, but for the constant in it. Was it computed before? */
static struct place computed(IROp op, IRTemp left, IRTemp right, struct place sum)
{
    for (UInt i = 0; i < knowns; i++) {
        const struct known *k = known + i;
        if (k->op == op && k->left == left && k->right == right)
            return (struct place){k->sum.root, sum.delta - k->sum.delta};
    }
    if (knowns < KNOWN)
        known[knowns++] = (struct known){op, left, right, sum};
    return (struct place){sum.root, 0};
}

/* What a temporary is worth, of what was worth known before. */
void la_watch_value(const IRTypeEnv *types, const IRStmt *s)
{
    if (s->tag != Ist_WrTmp || s->Ist.WrTmp.tmp >= TEMPORARIES)
        return;
    const IRTemp fresh = s->Ist.WrTmp.tmp;
    const IRExpr *value = s->Ist.WrTmp.data;
    struct place *out = value_of + fresh;

    if (typeOfIRTemp(types, fresh) != Ity_I64)
        return;
    if (value->tag == Iex_RdTmp)
        *out = la_place_of(value);
    if (value->tag != Iex_Binop)
        return;
    const IRExpr *left = value->Iex.Binop.arg1, *right = value->Iex.Binop.arg2;
    struct place a, b;
    switch (value->Iex.Binop.op) {
    case Iop_Add64:
        a = la_place_of(left);
        b = la_place_of(right);
        if (b.root == IRTemp_INVALID)
            *out = (struct place){a.root, a.delta + b.delta};
        else if (a.root == IRTemp_INVALID)
            *out = (struct place){b.root, a.delta + b.delta};
        else
            *out = computed(Iop_Add64, a.root, b.root, (struct place){fresh, a.delta + b.delta});
        break;
    case Iop_Sub64:
        a = la_place_of(left);
        b = la_place_of(right);
        if (b.root == IRTemp_INVALID)
            *out = (struct place){a.root, a.delta - b.delta};
        break;
    case Iop_Shl64:
        a = la_place_of(left);
        if (right->tag == Iex_Const && a.root != IRTemp_INVALID) {
            UInt count = right->Iex.Const.con->Ico.U8;
            *out = computed(Iop_Shl64, a.root, count, (struct place){fresh, a.delta << count});
        }
        break;
    default:
        break;
    }
}
