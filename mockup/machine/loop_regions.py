"""Loop nests of a function as regions with one entry: where to stop the program, where the nest ends, what it leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.machine.cfg import Block, Branch, Cfg, Jump, build_cfg
from layout_advise.mockup.machine.disassembly import Register
from layout_advise.mockup.machine.entry_values import Known, ReadOnly, known_vectors
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.machine.liveness import FLAGS, Liveness, Name, places
from layout_advise.tracer.code.flow_graph import NaturalLoop
from layout_advise.tracer.code.region import CodeRange, Region
from layout_advise.tracer.process.patching import JUMP_BYTES, MAX_EXITS

ABSORBED = 6
"""So many short blocks after a loop may be taken into its region, to find room for a jump behind it."""


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A loop nest; all addresses as in the ELF file.

    ``entry`` is passed once each time the loop with the head ``head`` is entered (and where it is skipped); ``ranges`` are
    the region's code as (start, end); ``exits`` where control goes on after it; ``outs`` the registers read there, and
    ``kept`` those read at each of them; ``known`` what the code before it leaves in the vector registers.
    """

    head: int
    entry: int
    ranges: tuple[tuple[int, int], ...]
    exits: tuple[int, ...]
    outs: tuple[Gpr | Lane, ...]
    known: Known = ()
    kept: tuple[frozenset[Name], ...] = ()

    def contains(self, address: int) -> bool:
        """Returns whether an address of the file is in the nest."""
        return any(start <= address < end for start, end in self.ranges)

    def region(self, function: Region) -> Region:
        """The nest as a region of code, of the function at its run-time addresses."""
        base = function.load_base
        pieces = []
        for start, end in self.ranges:
            whole = next(r for r in function.ranges if r.start <= start + base < r.end)
            pieces.append(CodeRange(start + base, whole.code[start + base - whole.start : end + base - whole.start]))
        return Region(
            function.symbol, "loop", self.entry + base, tuple(pieces), function.path, base, function.callees,
            tuple(e + base for e in self.exits), self.kept, function.ranges,
        )  # fmt: skip


def hottest_nests(function: Region, samples: Mapping[int, int]) -> Iterator[LoopNest | NotLiftedError]:
    """The nests on the way from the hottest outermost loop to its hottest innermost one, the outermost first; where one of
    them is no region with one entry, the reason. ``function`` is at load base 0, ``samples`` counts addresses in it."""
    # a loop with two entries elsewhere in the function is no obstacle
    cfg = build_cfg(function, strict=False, indirect_calls=True)
    live = Liveness(cfg)
    constant = open_image(function.path, function.load_base).read
    parent: int | None = None
    while True:
        inner = [loop for loop in cfg.loops if loop.parent == parent]
        weights = {loop.head: _weight(cfg, loop, samples) for loop in inner}
        if not inner or not max(weights.values()):
            return
        loop = max(inner, key=lambda one: weights[one.head])
        try:
            yield _nest(cfg, loop, live, constant)
        except NotLiftedError as error:
            yield error
        parent = loop.head


def _weight(cfg: Cfg, loop: NaturalLoop, samples: Mapping[int, int]) -> int:
    return sum(samples.get(insn.address, 0) for block in loop.blocks for insn in cfg.blocks[block].insns)


def _nest(cfg: Cfg, loop: NaturalLoop, live: Liveness, constant: ReadOnly) -> LoopNest:
    before = [p for p in cfg.graph.predecessors[loop.head] if p not in loop.blocks]
    if len(before) != 1:
        raise NotLiftedError(loop.head, "loop", f"it is entered in {len(before)} ways")
    preheader = cfg.blocks[before[0]]
    blocks = set(loop.blocks)
    exits = _exits(cfg, blocks, preheader)
    entry = _entry(preheader, live, exits)
    for _ in range(ABSORBED):
        short = [e for e in exits if not _has_room(cfg, e, entry)]
        if not short:
            break
        for one in short:
            block = cfg.blocks[one]
            closed = not isinstance(block.terminator, Jump | Branch) or any(i.address in cfg.calls for i in block.insns)
            if one == preheader.start or closed:
                raise NotLiftedError(one, "loop", "there is no room for a jump where it ends")
            blocks.add(one)
        exits = _exits(cfg, blocks, preheader)
    if any(not _has_room(cfg, e, entry) for e in exits):
        raise NotLiftedError(loop.head, "loop", "there is no room for a jump where it ends")
    if not 0 < len(exits) <= MAX_EXITS:
        raise NotLiftedError(loop.head, "loop", f"it ends in {len(exits)} places")
    kept = tuple(live.at_start[e] for e in exits)
    after = frozenset().union(*kept)
    if FLAGS & after:
        raise NotLiftedError(loop.head, "loop", "the code after it reads its flags")
    masks = sorted(number for kind, number in after if kind == "k")
    if masks:
        raise NotLiftedError(loop.head, "loop", f"the code after it reads mask register k{masks[0]}")
    insns = [i for b in (*blocks, preheader.start) for i in cfg.blocks[b].insns]
    vectors = [o for i in insns for o in i.operands if isinstance(o, Register) and o.kind == "vector"]
    lanes = max((o.bytes for o in vectors), default=16) // 8
    spans = [_span(cfg.blocks[b]) for b in blocks if cfg.blocks[b].insns]
    spans.append((entry, preheader.insns[-1].end))
    known = known_vectors(cfg, preheader.start, entry, constant)
    return LoopNest(loop.head, entry, _joined(spans), exits, places(after, lanes), known, kept)


def _exits(cfg: Cfg, blocks: set[int], preheader: Block) -> tuple[int, ...]:
    sources = [cfg.blocks[b] for b in blocks] + [preheader]
    return tuple(sorted({s for b in sources for s in b.successors if s not in blocks}))


def _entry(preheader: Block, live: Liveness, exits: tuple[int, ...]) -> int:
    """The last instruction of the block before the loop from which on a jump fits, behind any call and where no flags are
    awaited; else the last one at all, for a trap."""
    calls = [i.address for i in preheader.insns if i.mnemonic == "call"]
    fit = [
        i.address
        for i in preheader.insns
        if i.address > max(calls, default=0)
        and not FLAGS & live.before(preheader.start, i.address)
        and not (i.address == preheader.start and preheader.start in exits)
    ]
    if not fit:
        raise NotLiftedError(preheader.start, "loop", "there is no place before it to stop at")
    end = preheader.insns[-1].end
    roomy = [a for a in fit if end - a >= JUMP_BYTES]
    return roomy[-1] if roomy else fit[-1]


def _has_room(cfg: Cfg, place: int, entry: int) -> bool:
    """Returns whether a jump fits at the start of block ``place``, without reaching another block or passing ``entry``."""
    block = cfg.blocks[place]
    end = place
    for insn in block.insns:
        if place <= entry < insn.end and entry != place:
            break
        end = insn.end
        if end - place >= JUMP_BYTES:
            return True
    return False


def _span(block: Block) -> tuple[int, int]:
    return block.start, block.insns[-1].end


def _joined(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)
