"""Bodies of OpenMP's parallel regions: which function of the runtime starts them.

gcc makes the body of a region a function ``NAME._omp_fn.N``; its address is the first argument of ``GOMP_parallel`` or one
of its kin in libgomp (gcc's ``libgomp/libgomp_g.h``; the number of threads is the third). A call of that function by the
program is one run of the region by all its threads.
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
from layout_advise.tracer.binary import Binary
from layout_advise.tracer.snapshot.patching import Entry, Outlined
from layout_advise.tracer.symbols import Function
from layout_advise.tracer.trace import Mapping

_BODY = re.compile(r"\._omp_fn\.\d+$")
_OTHER_BODY = re.compile(r"(^|\.)omp_outlined(\.|$)|\.omp_outlined\.")
_STARTS = re.compile(r"GOMP_parallel(_loop_\w+|_sections|_reductions)?$")
_LIBRARY = re.compile(r"libgomp\.so(\.\d+)*$")
_REACH = 16
"""Instructions between the passing of the body's address and the call, about."""


def is_region_body(function: Function) -> bool:
    """Whether the function is the body of a parallel region, or of a task, as gcc or clang makes them."""
    return bool(_BODY.search(function.name) or _OTHER_BODY.search(function.name))


@lru_cache(maxsize=4)
def region_entry(module: Binary, function: Function, mappings: tuple[Mapping, ...]) -> Entry:
    """The entry of the runtime's function that starts the region with the body ``function``.

    ``mappings`` are those of a run of the program: they name the runtime's file. Raises :class:`TraceError` where the body
    belongs to a task, to two kinds of regions, or to another runtime than libgomp.
    """
    what = f"cannot stop at the parallel region {function.name}"
    if not _BODY.search(function.name):
        raise TraceError(what, "only regions of gcc's OpenMP (libgomp) are handled", "compile it with gcc -fopenmp")
    names = set(_callees(module, function))
    starts = {name for name in names if _STARTS.match(name)}
    if len(starts) != 1 or names != starts:
        why = f"its body is passed to {' and '.join(sorted(names))}" if names else "nothing in its file starts it"
        raise TraceError(what, why, "only bodies that one kind of parallel region has are handled")
    library = next((m.path for m in mappings if _LIBRARY.match(os.path.basename(m.path))), None)
    if library is None:
        raise TraceError(what, "libgomp.so was not loaded", "link it dynamically")
    name = starts.pop()
    runtime = Binary.open_module(library)
    start = runtime.exported(name)
    if start is None:
        raise TraceError(what, f"{library} has no {name}")
    body = Outlined(Path(module.path).resolve(), function.start)
    return Entry(Path(runtime.path).resolve(), start.start, runtime.read(start.start, start.size), name, body)


def _callees(module: Binary, function: Function) -> Iterator[str]:
    """Names of the functions that are called next wherever the code takes the address of ``function``."""
    for address, code in module.code:
        for at in _passes(code, address, function.start):
            yield _next_call(module, code[at : at + 15 * _REACH], address + at)


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


def _next_call(module: Binary, code: bytes, address: int) -> str:
    """The symbol that is called next, or jumped to as the last thing; ``?`` where that is not known."""
    for insn in _decode(code, address):
        called = insn.group(x86.X86_GRP_CALL)
        if called or insn.id == x86.X86_INS_JMP:
            name = _symbol(module, insn)
            if name is not None or called:
                return name or "?"
    return "?"


def _symbol(module: Binary, insn: capstone.CsInsn) -> str | None:
    """What a call or jump leads to: through a pointer that the loader filled in, or through a stub that does so."""
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
