"""The lifter's coverage of a binary: each function lifted, emitted and compiled, or the reason why not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

from layout_advise.errors import BinaryError, LayoutAdviseError, NotLiftedError
from layout_advise.mockup.emit import emit
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.cfg import CONDITIONS
from layout_advise.mockup.machine.disassembly import Immediate, Insn, Register, decode
from layout_advise.mockup.run.build import build
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.symbols import Function
from layout_advise.tracer.trace.trace import Registers, Trace

_NO_REGISTERS = Registers((0,) * 16, 0, 0, 0, 0)
_MOVES = re.compile(r"v?(mov(a|u|nt|l|h|lh|hl|msk)p[sd]|(and|andn|or|xor|unpck[lh]|shuf|blend|perm\w*)p[sd])")
_FLOAT = re.compile(r"v?\w+(ss|sd|ps|pd)(2\w+)?")
_ONWARD = frozenset(("jmp", "ret", "ud2", "hlt"))


@dataclass(frozen=True, slots=True)
class LiftStop:
    """The reason why a function is not lifted: ``address`` in the file, the instruction or construct there, and why."""

    address: int
    instruction: str
    reason: str

    @property
    def kind(self) -> str:
        """The reason without names and numbers, for counting."""
        if self.reason.startswith(("calls ", "leaves by")):
            return " ".join(self.reason.split()[:2])
        return re.sub(r"0x[0-9a-f]+|\d+", "N", self.reason)


@dataclass(frozen=True, slots=True)
class SurveyOutcome:
    """One function: ``lifted`` means that the C compiles; else ``stop`` says why not. ``float_loop``: a loop of it computes
    with floating-point numbers."""

    name: str
    start: int
    size: int
    float_loop: bool
    lifted: bool
    stop: LiftStop | None = None


def computes(insn: Insn) -> bool:
    """Returns whether the instruction computes with floating-point numbers, x87 included; vector moves do not count."""
    name = insn.mnemonic
    if name.startswith("f") and insn.bytes.lstrip(b"\x66\x9b")[:1] >= b"\xd8":
        return name not in ("fnstcw", "fldcw", "fnstsw", "fwait", "fninit")
    if name.startswith(("movs", "cmps", "lods", "stos", "scas")) and not _on_vectors(insn):
        return False  # string operations
    return _FLOAT.fullmatch(name) is not None and _MOVES.fullmatch(name) is None


def _on_vectors(insn: Insn) -> bool:
    return any(isinstance(op, Register) and op.kind == "vector" for op in insn.operands)


def has_float_loop(region: Region) -> bool:
    """Returns whether a cycle of the control flow (by direct jumps) holds an instruction that computes with floats."""
    return bool(float_loop_insns(decode(region)))


def float_loop_insns(insns: Mapping[int, Insn]) -> set[int]:
    """Addresses of the instructions that compute with floats and lie on a cycle of the control flow (by direct jumps)."""
    if not any(computes(insn) for insn in insns.values()):
        return set()
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from((at, to) for at, insn in insns.items() for to in _successors(insn) if to in insns)
    cycles = (p for p in nx.strongly_connected_components(graph) if len(p) > 1 or any(graph.has_edge(at, at) for at in p))
    return {at for part in cycles for at in part if computes(insns[at])}


def _successors(insn: Insn) -> Iterator[int]:
    name = insn.mnemonic
    if (name == "jmp" or name[1:] in CONDITIONS) and insn.operands and isinstance(insn.operands[0], Immediate):
        yield insn.operands[0].value
    if name not in _ONWARD:
        yield insn.end


def surveyed(binary: ElfBinary) -> tuple[Function, ...]:
    """The functions of the file that stand for themselves, ascending by address: no cold parts, no empty ones."""
    return tuple(f for f in binary.functions if f.size > 0 and not f.piece)


def lift_function(binary: ElfBinary, function: Function, load_base: int = 0) -> tuple[Region, Lifted]:
    """The function as the road would lift it, with calls of other functions left as calls."""
    region = binary.region(function, load_base)
    return region, lift(region, result=binary.result_kind(function), opaque=True)


def source_of(lifted: Lifted) -> str:
    """The identity mock-up as C: nothing is known of the addresses."""
    return emit(lifted, None, Trace(lifted.symbol, 1, "step", (), (), 0, False, _NO_REGISTERS, (), ()), ()).text


def examine(binary: ElfBinary, function: Function, folder: Path, flags: tuple[str, ...] = ("-O0",)) -> SurveyOutcome:
    """Lift one function and compile what came out (``gcc`` with ``flags``, in ``folder``)."""
    made = (function.name, function.start, function.size)
    try:
        region = binary.region(function, 0)
    except BinaryError as error:
        return SurveyOutcome(*made, False, False, LiftStop(function.start, "code", error.why))
    loop = has_float_loop(region)
    try:
        _, lifted = lift_function(binary, function)
        built = build(source_of(lifted), folder / "lifted.so", "gcc", flags)
    except NotLiftedError as error:
        return SurveyOutcome(*made, loop, False, LiftStop(error.address, error.instruction, error.reason))
    except LayoutAdviseError as error:
        return SurveyOutcome(*made, loop, False, LiftStop(function.start, "emitted C", f"{error.what}: {error.why}"))
    if built.path is None:
        return SurveyOutcome(
            *made, loop, False, LiftStop(function.start, "emitted C", built.reason or "it does not compile")
        )
    return SurveyOutcome(*made, loop, True)
