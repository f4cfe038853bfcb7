"""The control-flow graph of a region: basic blocks by recursive descent, dominators, natural loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Expr
from layout_advise.mockup.machine.disassembly import Immediate, Insn, MemoryOperand, decode, decode_one
from layout_advise.mockup.machine.image import Image, open_image
from layout_advise.mockup.machine.jump_tables import TargetCode, jump_targets
from layout_advise.tracer.code.flow_graph import FlowGraph, NaturalLoop, flow_graph
from layout_advise.tracer.code.region import Region

CONDITIONS: Mapping[str, str] = {
    "o": "o", "no": "no", "b": "b", "c": "b", "nae": "b", "ae": "ae", "nb": "ae", "nc": "ae", "e": "e", "z": "e",
    "ne": "ne", "nz": "ne", "be": "be", "na": "be", "a": "a", "nbe": "a", "s": "s", "ns": "ns", "p": "p", "pe": "p",
    "np": "np", "po": "np", "l": "l", "nge": "l", "ge": "ge", "nl": "ge", "le": "le", "ng": "le", "g": "g", "nle": "g",
}  # fmt: skip
"""Every spelling of an x86 condition code, and the canonical one."""

_NO_RETURN = frozenset((
    "abort", "exit", "_exit", "__assert_fail", "__stack_chk_fail", "__chk_fail", "__fortify_fail", "longjmp", "siglongjmp",
    "_Unwind_Resume", "__cxa_throw", "__cxa_rethrow", "__cxa_bad_cast", "__cxa_throw_bad_array_new_length",
    "_ZSt9terminatev",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Jump:
    """Goes on at block ``target``."""

    target: int


@dataclass(frozen=True, slots=True)
class Branch:
    """Goes to ``target`` where condition ``cc`` (canonical spelling) holds at the block's end, else to ``fallthrough``."""

    cc: str
    target: int
    fallthrough: int


@dataclass(frozen=True, slots=True)
class IndirectJump:
    """To whichever of ``targets`` (distinct, ascending) equals ``value``, an i64 expression over the locations at the end
    of the block (``effects.Read``). ``load`` is the address expression where the target comes from memory
    (``jmp [table + 8 * index]``): then the 8 bytes there are the value, and ``value`` is None.
    """

    targets: tuple[int, ...]
    value: Expr | None
    load: Expr | None = None


@dataclass(frozen=True, slots=True)
class Ret:
    """Returns to the caller; ``popped`` are the bytes of arguments it drops (``ret N``, normally 0)."""

    popped: int = 0


@dataclass(frozen=True, slots=True)
class TailCall:
    """Leaves the region by a jump to ``target`` (symbol ``name`` where known; ``target`` None: memory holds it)."""

    target: int | None
    name: str | None


@dataclass(frozen=True, slots=True)
class Trap:
    """Does not go on: ``ud2``, or after a call of a function that never returns; ``untaken``: before what cannot be lifted,
    on a way that was never taken."""

    reason: str
    untaken: bool = False


Terminator = Jump | Branch | IndirectJump | Ret | TailCall | Trap


@dataclass(frozen=True, slots=True)
class Called:
    """A call. ``name`` is the symbol where known (``exp`` for ``exp@plt``); ``target`` None: the address comes from a
    register or from memory (a slot of the global offset table has a name)."""

    target: int | None
    name: str | None


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block. ``insns`` include the closing jump, branch or return instruction where there is one (its semantics
    has no effects but those on rsp and, for memory-indirect jumps, none). Empty for the synthetic block that stands for a
    conditional jump out of the region.
    """

    start: int
    insns: tuple[Insn, ...]
    terminator: Terminator

    @property
    def successors(self) -> tuple[int, ...]:
        """Starts of the blocks that may follow, without repetition."""
        match self.terminator:
            case Jump(target):
                return (target,)
            case Branch(_, target, fallthrough):
                return tuple(dict.fromkeys((target, fallthrough)))
            case IndirectJump(targets):
                return targets
        return ()


@dataclass(frozen=True, slots=True)
class Cfg:
    """The basic blocks, in reverse postorder from the entry, and the ``graph`` of their starts.

    ``loops`` are outermost first (a parent comes before its children). ``calls`` maps the address of each call
    instruction to what it calls.
    """

    entry: int
    blocks: Mapping[int, Block]
    graph: FlowGraph
    loops: tuple[NaturalLoop, ...]
    calls: Mapping[int, Called] = field(default_factory=dict)


Names = Callable[[int], str | None]


def build_cfg(
    region: Region,
    names: Names | None = None,
    *,
    indirect_calls: bool = False,
    loops: bool = True,
    strict: bool = True,
    untaken: frozenset[int] = frozenset(),
) -> Cfg:
    """The control-flow graph of ``region`` (callees are not entered).

    ``names`` gives the symbol of a call target; by default the region's ELF file is asked (PLT stubs and symbol table).
    Without ``loops`` these are not looked for. On the way that begins at one of ``untaken`` a block ends (:class:`Trap`)
    before what would be refused. Raises :class:`NotLiftedError` for undecodable bytes, unresolved indirect
    jumps, irreducible control flow (where loops are wanted, and ``strict``), and, unless ``indirect_calls``, for calls of
    what a register or memory holds.
    """
    image = open_image(region.path, region.load_base)
    walk = _Descent(region, image, names or image.name_of, indirect_calls, untaken)
    walk.run()
    walk.share_jumps()
    blocks = walk.blocks()
    graph = flow_graph(region.entry, {start: block.successors for start, block in blocks.items()})
    if loops and strict and (edge := graph.second_entry()) is not None:
        raise NotLiftedError(edge[0], _text(blocks[edge[0]]), "irreducible control flow (a loop with two entries)")
    ordered = {start: blocks[start] for start in graph.order}
    return Cfg(region.entry, ordered, graph, graph.natural_loops() if loops else (), walk.calls)


def _text(block: Block) -> str:
    return block.insns[-1].text if block.insns else "jump"


class _Descent:
    """Recursive descent: instructions reached, where blocks start, and where they go."""

    def __init__(self, region: Region, image: Image, names: Names, indirect_calls: bool, untaken: frozenset[int]) -> None:
        self.region, self.image, self.names, self.indirect_calls = region, image, names, indirect_calls
        self.untaken = untaken
        self.refused: dict[int, NotLiftedError] = {}
        self.insns: dict[int, Insn] = {}
        self.leaders: set[int] = {region.entry}
        self.ends: dict[int, Terminator] = {}
        self.calls: dict[int, Called] = {}
        self.came_from: dict[int, int] = {}
        self.sweep: frozenset[int] | None = None

    def run(self) -> None:
        work = [self.region.entry]
        while work:
            at = work.pop()
            while at not in self.insns and at not in self.refused and self.region.contains(at):
                try:
                    insn = self._decode(at)
                    end = self._terminator(insn)
                except NotLiftedError as error:
                    if not self.untaken:
                        raise
                    self.refused[at] = error
                    break
                self.insns[at] = insn
                if end is not None:
                    self.ends[at] = end
                    targets = Block(at, (), end).successors
                    self.leaders.update(targets)
                    work.extend(targets)
                    break
                self.came_from[insn.end] = at
                at = insn.end

    def share_jumps(self) -> None:
        """Has indirect jumps through one table, by the same registers, go by one of them: a computed ``goto`` that is copied
        to the ends of an interpreter's instructions would make a loop with as many entries as there are copies."""
        shared: dict[IndirectJump, list[int]] = {}
        for at, end in self.ends.items():
            if isinstance(end, IndirectJump):
                shared.setdefault(end, []).append(at)
        for first, *copies in (sorted(places) for places in shared.values()):
            self.leaders |= {first} if copies else set()
            self.ends |= dict.fromkeys(copies, Jump(first))

    def _decode(self, at: int) -> Insn:
        piece = next(r for r in self.region.ranges if r.start <= at < r.end)
        return decode_one(piece.code[at - piece.start :], at)

    def _terminator(self, insn: Insn) -> Terminator | None:
        name = insn.mnemonic
        if name == "ret":
            first = insn.operands[0] if insn.operands else Immediate(0)
            return Ret(first.value if isinstance(first, Immediate) else 0)
        if name in ("ud2", "hlt", "int3", "ud1", "ud0"):
            return Trap(name)
        if name == "call":
            return self._call(insn)
        if name == "jmp":
            return self._jump(insn)
        if name.startswith("j") and name[1:] in CONDITIONS:
            target = insn.operands[0]
            assert isinstance(target, Immediate)
            return Branch(CONDITIONS[name[1:]], target.value, insn.end)
        if name in ("jrcxz", "jecxz", "loop", "loope", "loopne"):
            raise insn.refuse("loop-count branches are not lifted")
        if not self.region.contains(insn.end):
            return TailCall(insn.end, self.names(insn.end))
        return None

    def _call(self, insn: Insn) -> Terminator | None:
        target = insn.operands[0]
        if isinstance(target, Immediate):
            called = Called(target.value, self.names(target.value))
        elif isinstance(target, MemoryOperand) and target.base is None and target.index is None and target.segment is None:
            name = self.image.slot_name(target.displacement)
            if name is None and not self.indirect_calls:
                raise insn.refuse("indirect call")
            called = Called(None, name)  # -fno-plt: the slot of the global offset table names it
        elif self.indirect_calls:
            called = Called(None, None)
        else:
            raise insn.refuse("indirect call")
        self.calls[insn.address] = called
        if called.name in _NO_RETURN or ((called.name or "").startswith("_ZSt") and "__throw_" in (called.name or "")):
            return Trap(f"{called.name} does not return")
        if not self.region.contains(insn.end):
            return Trap("the function ends with a call that does not return")
        return None

    def _jump(self, insn: Insn) -> Terminator:
        target = insn.operands[0]
        if isinstance(target, Immediate):
            if self.region.contains(target.value):
                return Jump(target.value)
            return TailCall(target.value, self.names(target.value))
        if isinstance(target, MemoryOperand) and target.base is None and target.index is None:
            name = self.image.slot_name(target.displacement)
            return TailCall(None, name or f"[{target.displacement:#x}]")
        if isinstance(target, MemoryOperand) and target.index is None and self.indirect_calls:
            return TailCall(None, None)  # a jump table has an index: this is the function that a record names
        code = TargetCode(self.region.contains, self._starts)
        try:
            return IndirectJump(*jump_targets(insn, self._before(insn), self.image, code, self._known()))
        except NotLiftedError:
            if not self.indirect_calls:
                raise
            return TailCall(None, None)  # without a table: the function that a pointer names

    def _starts(self, address: int) -> bool:
        """Returns whether an instruction of the region begins at an address, by linear sweep."""
        if self.sweep is None:
            self.sweep = frozenset(decode(self.region))
        return address in self.sweep

    def _known(self) -> Iterable[Insn]:
        """All instructions found so far; for a loop region those of its whole function."""
        if not self.region.around:
            return self.insns.values()
        return decode(replace(self.region, ranges=self.region.around)).values()

    def _before(self, insn: Insn) -> list[Insn]:
        """Instructions that lead straight to ``insn``, nearest first, followed backwards over fallthroughs."""
        found: list[Insn] = []
        fallen = {**{self.insns[a].end: a for a, t in self.ends.items() if isinstance(t, Branch)}, **self.came_from}
        entered = {t.target: a for a, t in self.ends.items() if isinstance(t, Branch | Jump)}
        at = insn.address
        while len(found) < 40:
            before = fallen.get(at, entered.get(at))
            if before is None or any(before == i.address for i in found):
                break
            found.append(self.insns[before])
            at = before
        return found

    def blocks(self) -> dict[int, Block]:
        """The reached instructions as basic blocks, cut at leaders."""
        found: dict[int, Block] = {}
        for start in self.leaders:
            if start not in self.insns and start not in self.refused:
                found[start] = Block(start, (), TailCall(start, self.names(start)))
                continue
            body: list[Insn] = []
            at = start
            while True:
                if at in self.refused:
                    if start not in self.untaken:
                        raise self.refused[at]
                    found[start] = Block(start, tuple(body), Trap(self.refused[at].reason, untaken=True))
                    break
                body.append(self.insns[at])
                if at in self.ends:
                    found[start] = Block(start, tuple(body), self.ends[at])
                    break
                at = self.insns[at].end
                if at in self.leaders:
                    found[start] = Block(start, tuple(body), Jump(at))
                    break
        return found
