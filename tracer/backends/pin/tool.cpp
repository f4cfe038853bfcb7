/* The Pin tool: from the entry of the chosen call until its frame is gone, every memory operand of the thread that made it.
 * Never run with a real Pin, see README.md here. SPDX-License-Identifier: MIT */
#include "pin.H"

#include "report.h"

using namespace layout_advise;

static KNOB<std::string> KnobOut(KNOB_MODE_WRITEONCE, "pintool", "out", "", "folder for the results");
static KNOB<std::string> KnobFile(KNOB_MODE_WRITEONCE, "pintool", "entry_file", "", "ELF file of the hotspot");
static KNOB<UINT64> KnobAddress(KNOB_MODE_WRITEONCE, "pintool", "entry_address", "0", "its first instruction in that file");
static KNOB<std::string> KnobBlocksFile(KNOB_MODE_WRITEONCE, "pintool", "blocks_file", "", "library with the table of heap blocks");
static KNOB<UINT64> KnobBlocks(KNOB_MODE_WRITEONCE, "pintool", "blocks_at", "0", "address of la_blocks in it");
static KNOB<UINT64> KnobSlots(KNOB_MODE_WRITEONCE, "pintool", "slots_at", "0", "address of la_blocks_slots in it");
static KNOB<UINT64> KnobCall(KNOB_MODE_WRITEONCE, "pintool", "call", "1", "the call to trace");
static KNOB<UINT64> KnobCap(KNOB_MODE_WRITEONCE, "pintool", "cap", "0", "accesses to take at most");

static state kept;
static ADDRINT entry, blocks_base, top;
static THREADID traced = INVALID_THREADID;
static PIN_LOCK lock;
static bool off; /* the result is written; or this is a forked child, whose files would be the parent's */

static VOID finish(outcome how, const char *why = "")
{
    if (!write_result(kept, how, why))
        LOG("layout-advise: the result was not written\n");
    off = true;
    PIN_ExitProcess(0);
}

static VOID begin(THREADID thread, const CONTEXT *context)
{
    static const REG names[16] = {REG_GAX, REG_GCX, REG_GDX, REG_GBX, REG_STACK_PTR, REG_GBP, REG_GSI, REG_GDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12,       REG_R13, REG_R14, REG_R15};

    if (off) /* and another thread may have had the lock */
        return;
    PIN_GetLock(&lock, INT32(thread) + 1);
    if (traced == INVALID_THREADID && ++kept.calls == KnobCall.Value()) {
        for (UINT32 i = 0; i < 16; i++)
            kept.registers[i] = PIN_GetContextReg(context, names[i]);
        kept.registers[16] = entry;
        kept.registers[17] = PIN_GetContextReg(context, REG_GFLAGS);
        kept.registers[18] = PIN_GetContextReg(context, REG_SEG_FS_BASE);
        top = kept.registers[4];
        const UINT64 *table = blocks_base ? *reinterpret_cast<UINT64 *const *>(blocks_base + KnobBlocks.Value()) : 0;
        UINT64 slots = blocks_base ? *reinterpret_cast<const UINT64 *>(blocks_base + KnobSlots.Value()) : 0;
        if (!write_entry(kept, reinterpret_cast<const uint64_t *>(table), slots))
            finish(BROKEN, "the state at the entry was not written: is the disk full?");
        traced = thread;
    }
    PIN_ReleaseLock(&lock);
}

/* At every basic block: has the hotspot's frame gone? */
static VOID left(THREADID thread, ADDRINT stack)
{
    if (thread == traced && stack > top)
        finish(WHOLE);
}

static VOID access_one(THREADID thread, VOID *place, ADDRINT address)
{
    if (thread != traced)
        kept.foreign += traced != INVALID_THREADID;
    else if (!add(kept, static_cast<reference *>(place), address))
        finish(TRUNCATED);
}

/* Gathers and scatters: a lane is an access, numbered by the lane. */
static VOID access_lanes(THREADID thread, ADDRINT pc, const PIN_MULTI_MEM_ACCESS_INFO *lanes)
{
    for (UINT32 i = 0; thread == traced && i < lanes->numberOfMemops; i++) {
        const PIN_MEM_ACCESS_INFO &lane = lanes->memop[i];
        kind how = lane.memopType == PIN_MEMOP_LOAD ? READ : WRITE;
        if (lane.maskOn && !add(kept, find_reference(pc, i, how, lane.bytesAccessed), lane.memoryAddress))
            finish(TRUNCATED);
    }
}

static VOID on_instruction(INS ins)
{
    if (INS_Address(ins) == entry)
        INS_InsertCall(ins, IPOINT_BEFORE, AFUNPTR(begin), IARG_CALL_ORDER, CALL_ORDER_FIRST, IARG_THREAD_ID,
                       IARG_CONST_CONTEXT, IARG_END);
    if (!INS_IsStandardMemop(ins)) {
        if (INS_IsMemoryRead(ins) || INS_IsMemoryWrite(ins))
            INS_InsertPredicatedCall(ins, IPOINT_BEFORE, AFUNPTR(access_lanes), IARG_THREAD_ID, IARG_INST_PTR,
                                     IARG_MULTI_MEMORYACCESS_EA, IARG_END);
        return;
    }
    for (UINT32 i = 0; i < INS_MemoryOperandCount(ins); i++) {
        BOOL reads = INS_MemoryOperandIsRead(ins, i), writes = INS_MemoryOperandIsWritten(ins, i);
        kind how = reads && writes ? BOTH : reads ? READ : WRITE;
        reference *place = find_reference(INS_Address(ins), i, how, INS_MemoryOperandSize(ins, i));
        INS_InsertPredicatedCall(ins, IPOINT_BEFORE, AFUNPTR(access_one), IARG_THREAD_ID, IARG_PTR, place, IARG_MEMORYOP_EA, i,
                                 IARG_END);
    }
}

static VOID on_trace(TRACE trace, VOID *)
{
    for (BBL block = TRACE_BblHead(trace); BBL_Valid(block); block = BBL_Next(block)) {
        BBL_InsertCall(block, IPOINT_BEFORE, AFUNPTR(left), IARG_CALL_ORDER, CALL_ORDER_FIRST, IARG_THREAD_ID, IARG_REG_VALUE,
                       REG_STACK_PTR, IARG_END);
        for (INS ins = BBL_InsHead(block); INS_Valid(ins); ins = INS_Next(ins))
            on_instruction(ins);
    }
}

static VOID on_image(IMG image, VOID *)
{
    if (IMG_Name(image) == KnobFile.Value())
        entry = IMG_LoadOffset(image) + KnobAddress.Value();
    if (IMG_Name(image) == KnobBlocksFile.Value())
        blocks_base = IMG_LoadOffset(image);
}

static VOID at_end(INT32, VOID *)
{
    /* the program ended before the call, or within it */
    if (!off && !write_result(kept, traced == INVALID_THREADID ? NEVER : WHOLE, ""))
        LOG("layout-advise: the result was not written\n");
}

static VOID in_child(THREADID, const CONTEXT *, VOID *)
{
    off = true;
    traced = INVALID_THREADID;
}

int main(int argc, char *argv[])
{
    if (PIN_Init(argc, argv) || KnobOut.Value().empty() || KnobFile.Value().empty())
        return 1;
    kept.folder = KnobOut.Value();
    kept.cap = KnobCap.Value();
    PIN_InitLock(&lock);
    IMG_AddInstrumentFunction(on_image, 0);
    TRACE_AddInstrumentFunction(on_trace, 0);
    PIN_AddFiniFunction(at_end, 0);
    PIN_AddForkFunction(FPOINT_AFTER_IN_CHILD, in_child, 0);
    PIN_StartProgram();
    return 0;
}
