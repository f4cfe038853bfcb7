/* What is added to the program's code: a counter at the hotspot's entry, or the recording of every access.
 *
 * A recording superblock checks once whether the buffer has room for all of it and whether the hotspot's frame is still
 * there. Each of its pieces (it is cut at side exits) stores its number and moves `hot.next`; each access stores its address.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "tool.h"

#define WORD(value) IRExpr_Const(IRConst_U64(value))

struct maker {
    IRSB *out;
    IRExpr *next;     /* where this superblock's records begin */
    UInt words;       /* of finished pieces */
    Addr pc;
    UInt ordinal;     /* accesses of this instruction so far */
    UInt found;       /* references of the piece */
    UInt used;        /* words of the piece, its number not counted */
    struct access access[SLACK_WORDS];
    IRExpr *address[SLACK_WORDS];
    struct place place[SLACK_WORDS]; /* of what word i + 1 of the piece holds */
    Bool guarded[SLACK_WORDS];       /* that word is for one access only */
    UInt first_of_instruction;
    IRTemp stack;     /* the temporary that holds the stack pointer */
    IRTemp chosen;    /* of this instruction: chosen = either ? an address : the stack pointer */
    IRExpr *either;
};

static IRExpr *bind(IRSB *sb, IRType type, IRExpr *value)
{
    IRTemp fresh = newIRTemp(sb->tyenv, type);
    addStmtToIRSB(sb, IRStmt_WrTmp(fresh, value));
    return IRExpr_RdTmp(fresh);
}

static IRExpr *fetch(IRSB *sb, const ULong *place) { return bind(sb, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, WORD((Addr)place))); }
static void put(IRSB *sb, ULong *place, IRExpr *value) { addStmtToIRSB(sb, IRStmt_Store(Iend_LE, WORD((Addr)place), value)); }

static IRExpr *stack_pointer(IRSB *sb)
{
    return bind(sb, Ity_I64, IRExpr_Get(offsetof(VexGuestAMD64State, guest_RSP), Ity_I64));
}

static IRDirty *call(IRSB *sb, const HChar *name, void *function, IRExpr *guard)
{
    IRDirty *dirty = unsafeIRDirty_0_N(1, name, VG_(fnptr_to_fnentry)(function), mkIRExprVec_1(stack_pointer(sb)));
    dirty->guard = guard;
    addStmtToIRSB(sb, IRStmt_Dirty(dirty));
    return dirty;
}

/* Counts calls; at the chosen one all translations are discarded, and execution comes back here to record. */
static void count_call(IRSB *sb)
{
    IRExpr *left = bind(sb, Ity_I64, IRExpr_Binop(Iop_Sub64, fetch(sb, &hot.left), WORD(1)));
    put(sb, &hot.left, left);
    IRExpr *now = bind(sb, Ity_I1, IRExpr_Binop(Iop_CmpEQ64, left, WORD(0)));
    call(sb, "la_begin", la_begin, now);
    addStmtToIRSB(sb, IRStmt_Put(offsetof(VexGuestAMD64State, guest_CMSTART), WORD(0)));
    addStmtToIRSB(sb, IRStmt_Put(offsetof(VexGuestAMD64State, guest_CMLEN), WORD(~0ull)));
    addStmtToIRSB(sb, IRStmt_Exit(now, Ijk_InvalICache, IRConst_U64(entry), offsetof(VexGuestAMD64State, guest_RIP)));
}

static void head(struct maker *m)
{
    IRSB *sb = m->out;
    IRExpr *room = bind(sb, Ity_I64, IRExpr_Binop(Iop_Sub64, fetch(sb, &hot.limit), fetch(sb, &hot.next)));
    IRExpr *depth = bind(sb, Ity_I64, IRExpr_Binop(Iop_Sub64, fetch(sb, &hot.top), stack_pointer(sb)));
    IRExpr *both = bind(sb, Ity_I64, IRExpr_Binop(Iop_Or64, room, depth));
    call(sb, "la_full", la_full, bind(sb, Ity_I1, IRExpr_Binop(Iop_CmpLT64S, both, WORD(0))));
    m->next = fetch(sb, &hot.next);
}

static IRExpr *word_at(struct maker *m, UInt word)
{
    return word ? bind(m->out, Ity_I64, IRExpr_Binop(Iop_Add64, m->next, WORD(8 * word))) : m->next;
}

/* The addresses are in the buffer already; with its number before them the piece is whole. */
static void close_piece(struct maker *m)
{
    if (m->found) {
        addStmtToIRSB(m->out, IRStmt_Store(Iend_LE, word_at(m, m->words), WORD(la_piece(m->access, m->found, m->used + 1))));
        m->words += m->used + 1;
        put(m->out, &hot.next, word_at(m, m->words));
    }
    m->found = m->used = m->first_of_instruction = 0;
}

static Bool same_value(const IRExpr *a, const IRExpr *b)
{
    if (a->tag == Iex_RdTmp && b->tag == Iex_RdTmp)
        return a->Iex.RdTmp.tmp == b->Iex.RdTmp.tmp;
    return a->tag == Iex_Const && b->tag == Iex_Const && a->Iex.Const.con->Ico.U64 == b->Iex.Const.con->Ico.U64;
}

/* Which word of the piece the address is found in, and how far from it; a new word is stored here. */
static void find_word(struct maker *m, struct access *a, IRExpr *address, IRExpr *guard)
{
    struct place place = la_place_of(address);

    a->delta = 0;
    for (UInt i = 0; i < m->used && !guard; i++)
        if (m->place[i].root == place.root && !m->guarded[i]) {
            a->word = i + 1;
            a->delta = place.delta - m->place[i].delta;
            return;
        }
    m->guarded[m->used] = guard != NULL;
    m->place[m->used++] = place;
    a->word = m->used;
    if (guard) /* address 0: no access */
        address = bind(m->out, Ity_I64, IRExpr_ITE(guard, address, WORD(0)));
    addStmtToIRSB(m->out, IRStmt_Store(Iend_LE, word_at(m, m->words + m->used), address));
}

static void access_at(struct maker *m, enum kind kind, IRExpr *address, UInt bytes, IRExpr *guard)
{
    /* Lanes that a gather leaves out are loads from the stack pointer in Valgrind's IR. */
    if (kind == READ && !guard && address->tag == Iex_RdTmp && address->Iex.RdTmp.tmp == m->chosen)
        guard = m->either;
    if (guard && guard->tag == Iex_Const) {
        if (!guard->Iex.Const.con->Ico.U1)
            return;
        guard = NULL;
    }
    for (UInt i = m->first_of_instruction; kind != READ && i < m->found; i++) {
        const struct reference *r = m->access[i].reference;
        if (same_value(m->address[i], address) && r->bytes == bytes) {
            m->access[i].reference = la_reference(m->pc, r->ordinal, BOTH, bytes, r->guarded != 0);
            return;
        }
    }
    tl_assert(m->words + m->found + 2 < SLACK_WORDS);
    struct access *a = m->access + m->found;
    a->reference = la_reference(m->pc, m->ordinal++, kind, bytes, guard != NULL);
    m->address[m->found++] = address;
    find_word(m, a, address, guard);
}

static void watch_stack(struct maker *m, const IRStmt *s)
{
    const Int rsp = offsetof(VexGuestAMD64State, guest_RSP);

    if (s->tag == Ist_Put && s->Ist.Put.offset == rsp && s->Ist.Put.data->tag == Iex_RdTmp)
        m->stack = s->Ist.Put.data->Iex.RdTmp.tmp;
    if (s->tag != Ist_WrTmp)
        return;
    const IRExpr *value = s->Ist.WrTmp.data;
    if (value->tag == Iex_RdTmp && value->Iex.RdTmp.tmp == m->stack)
        m->stack = s->Ist.WrTmp.tmp;
    if (value->tag == Iex_RdTmp && value->Iex.RdTmp.tmp == m->chosen)
        m->chosen = s->Ist.WrTmp.tmp;
    if (value->tag == Iex_Get && value->Iex.Get.offset == rsp && value->Iex.Get.ty == Ity_I64)
        m->stack = s->Ist.WrTmp.tmp;
    if (value->tag == Iex_ITE && value->Iex.ITE.iffalse->tag == Iex_RdTmp && value->Iex.ITE.iffalse->Iex.RdTmp.tmp == m->stack) {
        m->chosen = s->Ist.WrTmp.tmp;
        m->either = value->Iex.ITE.cond;
    }
}

static void accesses_of(struct maker *m, const IRStmt *s)
{
    IRTypeEnv *types = m->out->tyenv;
    IRType result, loaded;

    switch (s->tag) {
    case Ist_WrTmp:
        if (s->Ist.WrTmp.data->tag == Iex_Load)
            access_at(m, READ, s->Ist.WrTmp.data->Iex.Load.addr, sizeofIRType(s->Ist.WrTmp.data->Iex.Load.ty), NULL);
        break;
    case Ist_Store:
        access_at(m, WRITE, s->Ist.Store.addr, sizeofIRType(typeOfIRExpr(types, s->Ist.Store.data)), NULL);
        break;
    case Ist_LoadG:
        typeOfIRLoadGOp(s->Ist.LoadG.details->cvt, &result, &loaded);
        access_at(m, READ, s->Ist.LoadG.details->addr, sizeofIRType(loaded), s->Ist.LoadG.details->guard);
        break;
    case Ist_StoreG:
        access_at(m, WRITE, s->Ist.StoreG.details->addr, sizeofIRType(typeOfIRExpr(types, s->Ist.StoreG.details->data)),
                  s->Ist.StoreG.details->guard);
        break;
    case Ist_Dirty: {
        const IRDirty *d = s->Ist.Dirty.details;
        if (d->mFx != Ifx_None)
            access_at(m, d->mFx == Ifx_Read ? READ : d->mFx == Ifx_Write ? WRITE : BOTH, d->mAddr, d->mSize, d->guard);
        break;
    }
    case Ist_CAS: {
        const IRCAS *c = s->Ist.CAS.details;
        UInt bytes = sizeofIRType(typeOfIRExpr(types, c->dataLo)) * (c->dataHi ? 2 : 1);
        access_at(m, BOTH, c->addr, bytes, NULL);
        break;
    }
    default:
        break;
    }
}

static IRSB *record(IRSB *in)
{
    static struct maker m; /* one translation at a time; too large for Valgrind's stack */
    Int i = 0;

    m.out = deepCopyIRSBExceptStmts(in);
    m.words = m.found = m.used = m.ordinal = m.first_of_instruction = 0;
    while (i < in->stmts_used && in->stmts[i]->tag != Ist_IMark)
        addStmtToIRSB(m.out, in->stmts[i++]);
    head(&m);
    la_values_begin(in->tyenv);
    m.stack = m.chosen = IRTemp_INVALID;
    for (; i < in->stmts_used; i++) {
        IRStmt *s = in->stmts[i];
        if (s->tag == Ist_IMark) {
            m.pc = s->Ist.IMark.addr;
            m.ordinal = 0;
            m.first_of_instruction = m.found;
            m.chosen = IRTemp_INVALID;
        }
        if (s->tag == Ist_Exit)
            close_piece(&m);
        addStmtToIRSB(m.out, s);
        watch_stack(&m, s);
        la_watch_value(m.out->tyenv, s);
        accesses_of(&m, s);
    }
    close_piece(&m);
    return m.out;
}

IRSB *la_instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents,
                    const VexArchInfo *host, IRType guest_word, IRType host_word)
{
    (void)layout, (void)extents, (void)host, (void)guest_word, (void)host_word;
    if (phase == INSIDE)
        return record(in);
    if (phase == OFF)
        return in;
    if (!entry)
        la_find_entry(closure->readdr);
    if (!entry)
        return in;
    for (Int i = 0, first = 1; i < in->stmts_used; i++) {
        if (in->stmts[i]->tag != Ist_IMark)
            continue;
        if (in->stmts[i]->Ist.IMark.addr == entry) {
            if (!first) {
                la_write_result(BROKEN, "the code before the hotspot runs into it");
                VG_(exit)(0);
            }
            IRSB *out = deepCopyIRSBExceptStmts(in);
            for (Int k = 0; k < i; k++)
                addStmtToIRSB(out, in->stmts[k]);
            count_call(out);
            for (Int k = i; k < in->stmts_used; k++)
                addStmtToIRSB(out, in->stmts[k]);
            return out;
        }
        first = 0;
    }
    return in;
}
