"""Live registers: those that the code after a loop may read, and a mock-up of the loop has to leave.

A backward analysis over the whole function. It errs towards more registers: what a call may read counts as read, and only
what certainly writes a whole register ends its life.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import capstone

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import (
    X87,
    Effect,
    Expr,
    Flags,
    Gpr,
    Lane,
    LoadEffect,
    Location,
    MaskBit,
    Op,
    PrefetchEffect,
    Read,
    SetEffect,
    StoreEffect,
    X87Depth,
)
from layout_advise.mockup.machine.cfg import CONDITIONS, Cfg, Ret, TailCall
from layout_advise.mockup.machine.disassembly import Immediate, Insn, MemoryOperand, Register, register
from layout_advise.mockup.machine.semantics import semantics
from layout_advise.mockup.machine.semantics.context import LANES

Name = tuple[str, int]
"""``("g", n)`` a general register, ``("v", n)`` a vector register, ``("k", n)`` a mask register,
``("f", 0)`` the carry flag, ``("f", 1)`` the others."""

CARRY: Name = ("f", 0)
REST: Name = ("f", 1)
FLAGS = frozenset({CARRY, REST})
_SETTERS = frozenset(
    (
        *("cmp", "test", "add", "sub", "and", "or", "xor", "neg", "imul", "mul", "adc", "sbb", "popcnt", "lzcnt", "tzcnt"),
        *("ucomisd", "ucomiss", "comisd", "comiss", "vucomisd", "vucomiss", "vcomisd", "vcomiss", "ptest", "vptest"),
    )
)
"""Instructions that give every flag a value, or leave it undefined."""
_ARGUMENTS = (7, 6, 2, 1, 8, 9)
_SAVED = frozenset(("g", n) for n in (3, 4, 5, 12, 13, 14, 15))
_RESULT: frozenset[Name] = frozenset({("g", 0), ("g", 2), ("v", 0), ("v", 1)})
_SCRATCH = frozenset(
    [
        *(("g", n) for n in (0, 1, 2, 6, 7, 8, 9, 10, 11)),
        *(("v", n) for n in range(32)),
        *(("k", n) for n in range(8)),
        *FLAGS,
    ]
)
_VECTORS = frozenset(("v", n) for n in range(8))
KNOWN: Mapping[str, tuple[int, int]] = {
    "malloc": (1, 0), "calloc": (2, 0), "free": (1, 0), "realloc": (2, 0), "puts": (1, 0), "putchar": (1, 0), "time": (1, 0),
    "clock": (0, 0), "clock_gettime": (2, 0), "gettimeofday": (2, 0), "exit": (1, 0), "memset": (3, 0), "memcpy": (3, 0),
    "memmove": (3, 0), "fflush": (1, 0), "fclose": (1, 0), "fputs": (2, 0), "fwrite": (4, 0), "rand": (0, 0), "atoi": (1, 0),
    "sqrt": (0, 1), "exp": (0, 1), "log": (0, 1), "sin": (0, 1), "cos": (0, 1), "pow": (0, 2), "omp_get_wtime": (0, 0),
    "sincos": (2, 1), "sincosf": (2, 1), "frexp": (1, 1), "modf": (1, 1), "ldexp": (1, 1), "lrand48": (0, 0),
    "drand48": (0, 0), "erand48": (1, 0), "random": (0, 0), "rand_r": (1, 0), "abs": (1, 0), "strlen": (1, 0),
    "strcmp": (2, 0), "strncmp": (3, 0), "strcpy": (2, 0), "strncpy": (3, 0), "memcmp": (3, 0), "aligned_alloc": (2, 0),
    "posix_memalign": (3, 0), "memalign": (2, 0), "cfree": (1, 0), "strdup": (1, 0), "__errno_location": (0, 0),
    "_Znwm": (1, 0), "_Znam": (1, 0), "_ZdlPv": (1, 0), "_ZdaPv": (1, 0), "_ZdlPvm": (2, 0), "_ZdaPvm": (2, 0),
}  # fmt: skip
"""How many integer and floating-point arguments some library functions take."""
FLOATING = frozenset(("drand48", "erand48", "omp_get_wtime"))
"""Those that take no floating-point arguments and return a floating-point number."""
VARIADIC = frozenset(
    f"{prefix}{name}{suffix}"
    for name in ("printf", "fprintf", "dprintf", "sprintf", "snprintf", "scanf", "fscanf", "sscanf")
    for prefix, suffix in (("", ""), ("__", "_chk"), ("__isoc99_", ""))
)
"""Of the arguments of these al tells how many are in vector registers (SysV ABI, 3.5.7)."""
_WHOLE = frozenset(
    ["movaps", "movapd", "movups", "movupd", "movdqa", "movdqu", "movd", "movq", "cvtps2pd", "cvtdq2pd", "pshufd"]
)


@cache
def _decoder() -> Any:
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    return decoder


def _names(decoded: Any, numbers: list[int]) -> set[Name]:
    found: set[Name] = set()
    for number in numbers:
        text = decoded.reg_name(number)
        if text in ("rflags", "eflags"):
            found |= FLAGS
            continue
        known = register(text)
        if known.kind != "other":
            found.add((known.kind[0] if known.kind != "mask" else "k", known.number))
    return found


def _call(name: str | None, before: Sequence[Insn]) -> tuple[set[Name], set[Name]]:
    ints, floats = KNOWN.get(name or "", (6, 8))
    variadic = name not in KNOWN
    if name in VARIADIC:
        floats = min(_vector_count(before), 8)
    used: set[Name] = {("g", n) for n in _ARGUMENTS[:ints]} | {("v", n) for n in range(floats)} | {("g", 4)}
    if variadic:
        used.add(("g", 0))  # al: how many vector registers a variadic call uses
    return used, set(_SCRATCH)


def _vector_count(before: Sequence[Insn]) -> int:
    """The value of al after the instructions ``before``, where the last one that writes it is among them and
    gives it a constant; else 8."""
    for insn in reversed(before):
        decoded = next(_decoder().disasm(insn.bytes, insn.address, 1))
        if insn.mnemonic == "call" or ("g", 0) in _names(decoded, list(decoded.regs_access()[1])):
            given = insn.operands[1] if insn.mnemonic == "mov" else None
            if isinstance(given, Immediate):
                return given.value & 0xFF
            cleared = insn.mnemonic == "xor" and len(set(insn.operands)) == 1
            return 0 if cleared else 8
    return 8


def uses_and_kills(insn: Insn) -> tuple[set[Name], set[Name]]:
    """The registers that an instruction reads, and those that it certainly writes as a whole."""
    if insn.evex or any(isinstance(o, Register) and o.kind == "mask" for o in insn.operands):
        return _by_effects(insn)
    decoded = next(_decoder().disasm(insn.bytes, insn.address, 1))
    read, written = (_names(decoded, list(part)) for part in decoded.regs_access())
    operands = insn.operands
    if FLAGS & read:
        read = (read - FLAGS) | _flags_read(insn.mnemonic)
    whole: set[Name] = set()
    for name in written:
        own = [o for o in operands[:1] if getattr(o, "kind", "") == ("gpr" if name[0] == "g" else "vector")]
        width = getattr(own[0], "bytes", 0) if own and getattr(own[0], "number", -1) == name[1] else 8
        conditional = insn.mnemonic.startswith("cmov")
        if name in FLAGS:
            whole |= {name} if insn.mnemonic in _SETTERS or (name == REST and insn.mnemonic in ("inc", "dec")) else set()
        elif name[0] == "g":
            whole |= {name} if width >= 4 and not conditional else set()
        elif insn.vex or (insn.mnemonic in _WHOLE and name not in read):
            whole.add(name)
    if insn.mnemonic in ("xor", "pxor", "xorps", "xorpd", "vxorps", "vpxor", "vxorpd") and len(set(operands)) == 1:
        name = next(iter(written - FLAGS))
        read, whole = read - {name}, whole | {name}
    if insn.mnemonic in ("movss", "movsd") and len(operands) == 2 and not hasattr(operands[1], "kind"):
        whole |= {n for n in written if n[0] == "v"}  # the load clears the rest
        read -= {n for n in read if n[0] == "v"}
    return read, whole


def _by_effects(insn: Insn) -> tuple[set[Name], set[Name]]:
    """The same of an AVX-512 instruction: capstone does not report masked writes. One that is not lifted reads all
    that it names."""
    try:
        effects = semantics(insn).effects
    except NotLiftedError:
        return {_name(place) for place in _named(insn)} | ({("k", insn.mask)} if insn.mask else set()), set()
    sets = [effect.location for effect in effects if isinstance(effect, SetEffect)]
    lanes = [place.number for place in sets if isinstance(place, Lane)]
    killed = {_name(place) for place in sets if isinstance(place, Gpr | MaskBit)}
    killed |= {("v", number) for number in lanes if lanes.count(number) == LANES}
    killed |= FLAGS if any(isinstance(place, Flags) for place in sets) else set()
    used = {_name(p) for effect in effects for p in _reads(effect) if not isinstance(p, Flags | X87 | X87Depth)}
    return used, killed


def _named(insn: Insn) -> list[Gpr | Register]:
    """The registers that the operands name, those of addresses included."""
    inside = [r for o in insn.operands if isinstance(o, MemoryOperand) for r in (o.base, o.index, o.vector_index) if r]
    return [*(o for o in insn.operands if isinstance(o, Register) and o.kind != "other"), *inside]


def _name(place: Gpr | Lane | MaskBit | Register) -> Name:
    if isinstance(place, Register):
        return {"gpr": "g", "vector": "v", "mask": "k"}[place.kind], place.number
    return "g" if isinstance(place, Gpr) else "v" if isinstance(place, Lane) else "k", place.number


def _reads(effect: Effect) -> set[Location]:
    found: set[Location] = set()
    work: list[Expr] = []
    match effect:
        case LoadEffect(address=address, guard=guard):
            work = [address] if guard is None else [address, guard]
        case StoreEffect(address=address, value=value, guard=guard):
            work = [address, value] if guard is None else [address, value, guard]
        case PrefetchEffect(address=address):
            work = [address]
        case SetEffect(_, value):
            work = [value]
    while work:
        one = work.pop()
        if isinstance(one, Read):
            found.add(one.location)
        elif isinstance(one, Op):
            work += one.args
    return found


def _flags_read(mnemonic: str) -> frozenset[Name]:
    """The flags that an instruction reads."""
    for prefix in ("cmov", "set", "j"):
        condition = CONDITIONS.get(mnemonic.removeprefix(prefix)) if mnemonic.startswith(prefix) else None
        if condition is not None:
            return (
                frozenset({CARRY}) if condition in ("b", "ae") else FLAGS if condition in ("a", "be") else frozenset({REST})
            )
    return frozenset({CARRY}) if mnemonic in ("adc", "sbb") else FLAGS


class Liveness:
    """The live places at each point of a function."""

    def __init__(self, cfg: Cfg) -> None:
        self.cfg = cfg
        self.at_start: dict[int, frozenset[Name]] = dict.fromkeys(cfg.blocks, frozenset())
        changed = True
        while changed:
            changed = False
            for start in reversed(list(cfg.blocks)):
                found = self._through(start, cfg.blocks[start].start)
                if found != self.at_start[start]:
                    self.at_start[start] = found
                    changed = True

    def _end(self, start: int) -> set[Name]:
        block = self.cfg.blocks[start]
        if isinstance(block.terminator, Ret):
            return set(_RESULT | _SAVED)
        if isinstance(block.terminator, TailCall):
            return {("g", n) for n in range(16)} | set(_VECTORS)
        return {name for after in block.successors for name in self.at_start[after]}

    def _through(self, start: int, address: int) -> frozenset[Name]:
        live = frozenset(self._end(start))
        for at, found in self.each(start):
            if at < address:
                break
            live = found
        return live

    def each(self, start: int) -> Iterator[tuple[int, frozenset[Name]]]:
        """The places that are live before each instruction of the block that begins at ``start``, the last one first."""
        live = self._end(start)
        insns = self.cfg.blocks[start].insns
        for number, insn in reversed(list(enumerate(insns))):
            called = self.cfg.calls.get(insn.address)
            used, killed = _call(called.name, insns[:number]) if called is not None else uses_and_kills(insn)
            if called is not None and called.target is None:
                used |= {_name(place) for place in _named(insn)}
            live = (live - killed) | used
            yield insn.address, frozenset(live)

    def before(self, start: int, address: int) -> frozenset[Name]:
        """The places that are live before the instruction at ``address`` of the block that begins at ``start``."""
        return self._through(start, address)


def places(live: frozenset[Name], lanes: int) -> tuple[Gpr | Lane, ...]:
    """Live registers as locations, but rsp; ``lanes`` is how many 64-bit lanes of a vector register count."""
    found: list[Gpr | Lane] = []
    for kind, number in sorted(live):
        if kind == "g" and number != 4:
            found.append(Gpr(number))
        elif kind == "v":
            found += [Lane(number, k) for k in range(lanes)]
    return tuple(found)
