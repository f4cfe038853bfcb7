"""Bodies of OpenMP's parallel regions: which function of the runtime starts them.

gcc makes the body of a region a function ``NAME._omp_fn.N``; its address is the first argument of ``GOMP_parallel`` or one
of its kin in libgomp (gcc's ``libgomp/libgomp_g.h``; the number of threads is the third). clang names it ``.omp_outlined.``
or ``NAME.omp_outlined``; its address is the third argument of libomp's ``__kmpc_fork_call``, which starts them all. A call
of that function by the program is one run of the region by all its threads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

import capstone
from capstone import x86_const as x86

from layout_advise.errors import TraceError
from layout_advise.tracer.code.instructions import functions_of
from layout_advise.tracer.process.patching import RDI, RDX, Entry, Outlined
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.symbols import Function
from layout_advise.tracer.trace.trace import Mapping

_BODY = re.compile(r"\._omp_fn\.\d+$")
_CLANGS_BODY = re.compile(r"(^|\.)omp_outlined(\.|_debug__|$)")
_CLANGS_INNER = re.compile(r"_debug__(\.\d+)?$")
_STARTS = re.compile(r"GOMP_parallel(_loop_\w+|_sections|_reductions)?$")
_LIBGOMP = re.compile(r"libgomp\.so(\.\d+)*$")
_LIBOMP = re.compile(r"libomp(-\d+)?\.so(\.\d+)*$")
_FORK, _TEAMS = "__kmpc_fork_call", "__kmpc_fork_teams"
_VOLATILE = frozenset(("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"))
"""Registers that a call does not keep."""
_REACH = 16
"""Instructions between the passing of the body's address and the call, about."""


def is_region_body(function: Function) -> bool:
    """Returns whether the function is the body of a parallel region, or of a task, as gcc or clang makes them."""
    return bool(_BODY.search(function.name) or _CLANGS_BODY.search(function.name))


def is_runtime(path: str) -> bool:
    """Returns whether the file is gcc's or clang's runtime of parallel regions."""
    name = os.path.basename(path)
    return bool(_LIBGOMP.match(name) or _LIBOMP.match(name))


def bodies_started(module: ElfBinary, function: Function) -> tuple[Function, ...]:
    """The bodies of the parallel regions that the function starts, or functions that it calls: those whose addresses their
    code loads."""
    region = module.region(function, 0, callees=True)
    ranges = [found for one in functions_of(region) for found in one.ranges]
    bodies = (one for one in module.functions if is_region_body(one))
    return tuple(one for one in bodies if any(_loads(found.code, found.start, one.start) for found in ranges))


def _loads(code: bytes, address: int, target: int) -> bool:
    """Tells whether the code loads the address ``target`` for a call: as it may be passed, or at a fixed address as the
    third argument (``mov edx, x``)."""
    fixed = b"\xba" + (target & 0xFFFFFFFF).to_bytes(4, "little")
    return next(_passes(code, address, target), None) is not None or fixed in code


@lru_cache(maxsize=4)
def region_entry(module: ElfBinary, function: Function, mappings: tuple[Mapping, ...]) -> Entry:
    """The entry of the runtime's function that starts the region with the body ``function``.

    ``mappings`` are those of a run of the program: they name the runtime's file. Raises :class:`TraceError` where the body
    belongs to a task or to two kinds of regions, is also called directly, or where its runtime is not there.
    """
    what = f"cannot stop at the parallel region {function.name}"
    if _BODY.search(function.name):
        name, library, register = _start_by_gcc(module, function, what), _LIBGOMP, RDI
    else:
        name, library, register = _start_by_clang(module, function, what), _LIBOMP, RDX
    found = next((m.path for m in mappings if library.match(os.path.basename(m.path))), None)
    if found is None:
        file = "libgomp.so" if library is _LIBGOMP else "libomp.so"
        raise TraceError(what, f"{file} was not loaded", "link it dynamically")
    runtime = ElfBinary.open_module(found)
    start = runtime.exported(name)
    if start is None:
        raise TraceError(what, f"{found} has no {name}")
    body = Outlined(Path(module.path).resolve(), function.start, register)
    return Entry(Path(runtime.path).resolve(), start.start, runtime.read(start.start, start.size), name, body)


def _start_by_gcc(module: ElfBinary, function: Function, what: str) -> str:
    names = set(_callees(module, function))
    starts = {name for name in names if _STARTS.match(name)}
    if len(starts) != 1 or names != starts:
        why = f"its body is passed to {' and '.join(sorted(names))}" if names else "nothing in its file starts it"
        raise TraceError(what, why, "only bodies that one kind of parallel region has are handled")
    return starts.pop()


def _start_by_clang(module: ElfBinary, function: Function, what: str) -> str:
    """clang outlines for parallel regions and for teams; which of its bodies a call is handed is seen at run time. Those
    that are called directly do not run in a team each time."""
    slots = frozenset(module.slots.values())
    if _FORK not in slots:
        raise TraceError(what, f"nothing in its file calls {_FORK}", "only regions of libgomp and libomp are handled")
    if _TEAMS in slots:
        raise TraceError(what, f"its file also calls {_TEAMS}", "regions in teams are not handled")
    caller = next(_direct_calls(module, function.start), None)
    if caller is not None and _CLANGS_INNER.search(function.name):
        raise TraceError(what, f"it is called by {caller}, which is the region", "compile it with -O1 or more")
    if caller is not None:
        raise TraceError(what, f"{caller} also calls its body directly, as for an if clause", "not all its runs can be seen")
    return _FORK


def _direct_calls(module: ElfBinary, target: int) -> Iterator[str]:
    """The functions in which a call or jump with a relative address leads to ``target``, which is another function."""
    for address, code in module.code:
        for found in re.finditer(rb"[\xe8\xe9]", code):
            end = found.end() + 4
            if address + end + int.from_bytes(code[found.end() : end], "little", signed=True) == target:
                caller = module.function_at(address + found.start())
                if caller is None or caller.start != target:
                    yield caller.name if caller is not None else hex(address + found.start())


def _callees(module: ElfBinary, function: Function) -> Iterator[str]:
    """Names of the functions that are handed the address of ``function``, wherever the code takes it."""
    for address, code in module.code:
        for at in _passes(code, address, function.start):
            taker = module.function_at(address + at)
            end = taker.end - address if taker is not None else at + 15 * _REACH
            yield from _handed_to(module, code[at:end], address + at)


def _handed_to(module: ElfBinary, code: bytes, address: int) -> Iterator[str]:
    """The functions that are called with what the first instruction loads as first argument. It may lie in another register
    or on the stack before, across a whole loop and calls in it; where it gets lost, the starts of regions that are called
    in the rest of the function."""
    first, *rest = _decode(code, address)
    if first.op_str.startswith(("rdi", "edi")):
        yield _next_call(module, code[: 15 * _REACH], address)
        return
    holders, found = {first.op_str.partition(",")[0]}, False
    for insn in rest:
        target, _, source = insn.op_str.partition(", ")
        if insn.id == x86.X86_INS_MOV and source in holders:
            if target == "rdi":
                found = True
                at = insn.address - address
                yield _next_call(module, code[at : at + 15 * _REACH], insn.address)
            else:
                holders.add(target)
        elif insn.group(x86.X86_GRP_CALL):
            holders -= _VOLATILE
        elif insn.id not in (x86.X86_INS_CMP, x86.X86_INS_TEST, x86.X86_INS_PUSH):
            holders.discard(target)
    if not found:
        calls = {_symbol(module, insn) for insn in rest if insn.group(x86.X86_GRP_CALL)}
        yield from [name for name in calls if name is not None and _STARTS.match(name)] or ["?"]


def _passes(code: bytes, address: int, target: int) -> Iterator[int]:
    """Offsets of the instructions that load the address ``target``: lea r, [rip + x] for any register (unoptimised code goes
    by another one), mov edi, x."""
    for found in re.finditer(rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d]", code, re.DOTALL):
        end = found.end() + 4
        if address + end + int.from_bytes(code[found.end() : end], "little", signed=True) == target:
            yield found.start()
    yield from (
        found.start() for found in re.finditer(re.escape(b"\xbf" + (target & 0xFFFFFFFF).to_bytes(4, "little")), code)
    )


def _next_call(module: ElfBinary, code: bytes, address: int) -> str:
    """The symbol that is called next, or jumped to as the last thing; ``?`` where that is not known."""
    for insn in _decode(code, address):
        called = insn.group(x86.X86_GRP_CALL)
        if called or insn.id == x86.X86_INS_JMP:
            name = _symbol(module, insn)
            if name is not None or called:
                return name or "?"
    return "?"


def _symbol(module: ElfBinary, insn: capstone.CsInsn) -> str | None:
    """The target of a call or jump: through a pointer that the loader filled in, or through a stub that does so."""
    operand = insn.operands[0]
    if operand.type == x86.X86_OP_MEM and operand.mem.base == x86.X86_REG_RIP:
        return module.slots.get(insn.address + insn.size + operand.mem.disp)
    if operand.type != x86.X86_OP_IMM:
        return None
    stub = next((c[operand.imm - a :][:16] for a, c in module.code if a <= operand.imm < a + len(c)), b"")
    for inner in islice(_decode(stub, operand.imm), 2):  # [endbr64] [bnd] jmp [slot]
        if inner.id == x86.X86_INS_JMP and inner.operands[0].type == x86.X86_OP_MEM:
            return _symbol(module, inner)
    return None


def _decode(code: bytes, address: int) -> Iterator[capstone.CsInsn]:
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    yield from decoder.disasm(code, address)
