"""Loop nests of a function as regions with one entry: where to stop the program, where the nest ends, what it leaves.

A nest is entered before its head, once for all its iterations. One that makes too many is entered at its head instead, and
left there after a chunk of them: such a chunk is its call, and the next one begins where it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.machine.cfg import Block, Branch, Cfg, Jump, build_cfg
from layout_advise.mockup.machine.disassembly import Insn, Register
from layout_advise.mockup.machine.entry_values import Known, ReadOnly, State, known_vectors, states_before
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.machine.liveness import FLAGS, Liveness, Name, places
from layout_advise.tracer.code.flow_graph import NaturalLoop
from layout_advise.tracer.code.region import CodeRange, Region
from layout_advise.tracer.process.patching import ALIGNMENT, JUMP_BYTES, MAX_EXITS, padding

ABSORBED = 6
"""So many short blocks after a loop may be taken into its region, to find room for a jump behind it."""


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A loop nest; all addresses as in the ELF file.

    ``entry`` is passed once each time the loop with the head ``head`` is entered (and where it is skipped); ``ranges`` are
    the region's code as (start, end); ``exits`` where control goes on after it; ``outs`` the registers read there, and
    ``kept`` those read at each of them; ``known`` what the code before it leaves in the vector registers. With a ``chunk``
    the entry is the head, the loop is left after so many iterations, too, and what is read at the head is kept last.
    """

    head: int
    entry: int
    ranges: tuple[tuple[int, int], ...]
    exits: tuple[int, ...]
    outs: tuple[Gpr | Lane, ...]
    known: Known = ()
    kept: tuple[frozenset[Name], ...] = ()
    chunk: int = 0

    def contains(self, address: int) -> bool:
        """Returns whether an address of the file is in the nest."""
        return any(start <= address < end for start, end in self.ranges)

    @property
    def bytes(self) -> int:
        """Of its code."""
        return sum(end - start for start, end in self.ranges)

    def region(self, function: Region) -> Region:
        """The nest as a region of code, of the function at its run-time addresses."""
        base = function.load_base
        pieces = []
        for start, end in self.ranges:
            whole = next(r for r in function.ranges if r.start <= start + base < r.end)
            pieces.append(CodeRange(start + base, whole.code[start + base - whole.start : end + base - whole.start]))
        return Region(
            function.symbol, "loop", self.entry + base, tuple(pieces), function.path, base, function.callees,
            tuple(e + base for e in self.exits), self.kept, function.ranges, self.chunk,
        )  # fmt: skip


def hottest_nests(
    function: Region, samples: Mapping[int, int], chunk: int = 0, beside: Collection[int] = ()
) -> Iterator[LoopNest | NotLiftedError]:
    """The nests on the way from the hottest outermost loop to its hottest innermost one, the outermost first; where one of
    them is no region with one entry, the reason. ``function`` is at load base 0, ``samples`` counts addresses in it. With
    ``chunk`` each is entered at its head, for so many iterations: one that the function enters in several ways, too. Those
    ``beside`` loops with these heads share no code with them."""
    # a loop with two entries elsewhere in the function is no obstacle
    cfg = build_cfg(function, strict=False, indirect_calls=True)
    live = Liveness(cfg)
    constant = open_image(function.path, function.load_base).read
    before = cache(lambda: states_before(cfg, constant))
    parent: int | None = None
    while True:
        inner = [loop for loop in cfg.loops if loop.parent == parent and loop.head not in beside]
        known = [loop for loop in cfg.loops if loop.head in beside]
        weights = {
            one.head: _weight(cfg, one, samples) - sum(_weight(cfg, k, samples) for k in known if k.head in one.blocks)
            for one in inner
        }
        if chunk:
            yield from _turned_in_chunks(cfg, parent, max(weights.values(), default=0), samples, live, constant, chunk)
        if max(weights.values(), default=0) <= 0:
            return
        loop = max(inner, key=lambda one: weights[one.head])
        parent = loop.head
        if any(one.head in loop.blocks for one in known):
            continue
        try:
            yield _in_chunks(cfg, loop, live, constant, chunk) if chunk else _nest(cfg, loop, live, constant, before)
        except NotLiftedError as error:
            yield error


def _weight(cfg: Cfg, loop: NaturalLoop, samples: Mapping[int, int]) -> int:
    return sum(samples.get(insn.address, 0) for block in loop.blocks for insn in cfg.blocks[block].insns)


def _turned_in_chunks(
    cfg: Cfg,
    parent: int | None,
    least: int,
    samples: Mapping[int, int],
    live: Liveness,
    constant: ReadOnly,
    chunk: int,
) -> Iterator[LoopNest | NotLiftedError]:
    """The cycles in the loop ``parent`` that are entered in several ways, and have no fewer samples than ``least``: once for
    each set of loops within, from the first place on that can be stopped at, or why there is none."""
    around = next((loop.blocks - {parent} for loop in cfg.loops if loop.head == parent), cfg.blocks)
    for ways in chain.from_iterable(cfg.graph.turned_loops(around)):
        refused = None
        for loop in ways if _weight(cfg, ways[0], samples) >= max(1, least) else ():
            try:
                yield _in_chunks(cfg, loop, live, constant, chunk)
                break
            except NotLiftedError as error:
                refused = refused or error
        else:
            if refused is not None:
                yield refused


def _nest(
    cfg: Cfg, loop: NaturalLoop, live: Liveness, constant: ReadOnly, states: Callable[[], Mapping[int, State]]
) -> LoopNest:
    before = [p for p in cfg.graph.predecessors[loop.head] if p not in loop.blocks]
    if len(before) != 1:
        raise NotLiftedError(loop.head, "loop", f"it is entered in {len(before)} ways")
    preheader = cfg.blocks[before[0]]
    entry = _entry(preheader, live, _exits(cfg, loop.blocks, preheader))
    blocks, exits = _with_room(cfg, loop, entry, constant, preheader)
    kept = _kept(loop, live, exits)
    insns = [i for b in (*blocks, preheader.start) for i in cfg.blocks[b].insns]
    spans = [_span(cfg.blocks[b]) for b in blocks if cfg.blocks[b].insns]
    spans.append((entry, preheader.insns[-1].end))
    known = known_vectors(cfg, states(), preheader.start, entry, constant)
    return LoopNest(loop.head, entry, _joined(spans), exits, _outs(kept, insns), known, kept)


def _in_chunks(cfg: Cfg, loop: NaturalLoop, live: Liveness, constant: ReadOnly, chunk: int) -> LoopNest:
    head = loop.head
    if FLAGS & live.at_start[head]:
        raise NotLiftedError(head, "loop", "its head reads the flags of what comes before it")
    if not _has_room(cfg, head, head, constant):
        raise NotLiftedError(head, "loop", "there is no room for a jump at its head")
    blocks, exits = _with_room(cfg, loop, head, constant)
    kept = _kept(loop, live, (*exits, head))
    insns = [i for b in blocks for i in cfg.blocks[b].insns]
    spans = [_span(cfg.blocks[b]) for b in blocks if cfg.blocks[b].insns]
    return LoopNest(head, head, _joined(spans), exits, _outs(kept, insns), (), kept, chunk)


def _with_room(
    cfg: Cfg, loop: NaturalLoop, entry: int, constant: ReadOnly, preheader: Block | None = None
) -> tuple[set[int], tuple[int, ...]]:
    """The blocks of the loop, with short ones behind it, and where it ends: a jump fits at each of these places."""
    blocks = set(loop.blocks)
    exits = _exits(cfg, blocks, preheader)
    for _ in range(ABSORBED):
        short = [e for e in exits if not _has_room(cfg, e, entry, constant)]
        if not short:
            break
        for one in short:
            block = cfg.blocks[one]
            closed = not isinstance(block.terminator, Jump | Branch) or any(i.address in cfg.calls for i in block.insns)
            if block is preheader or closed:
                raise NotLiftedError(one, "loop", "there is no room for a jump where it ends")
            blocks.add(one)
        exits = _exits(cfg, blocks, preheader)
    if any(not _has_room(cfg, e, entry, constant) for e in exits):
        raise NotLiftedError(loop.head, "loop", "there is no room for a jump where it ends")
    if not 0 < len(exits) <= MAX_EXITS:
        raise NotLiftedError(loop.head, "loop", f"it ends in {len(exits)} places")
    return blocks, exits


def _kept(loop: NaturalLoop, live: Liveness, ends: Sequence[int]) -> tuple[frozenset[Name], ...]:
    """The registers that are read at each of the places where the loop is left."""
    kept = tuple(live.at_start[e] for e in ends)
    after = frozenset().union(*kept)
    if FLAGS & after:
        raise NotLiftedError(loop.head, "loop", "the code after it reads its flags")
    masks = sorted(number for kind, number in after if kind == "k")
    if masks:
        raise NotLiftedError(loop.head, "loop", f"the code after it reads mask register k{masks[0]}")
    return kept


def _outs(kept: Sequence[frozenset[Name]], insns: Iterable[Insn]) -> tuple[Gpr | Lane, ...]:
    """The registers that are read behind the instructions, as wide as these use them."""
    vectors = [o for i in insns for o in i.operands if isinstance(o, Register) and o.kind == "vector"]
    lanes = max((o.bytes for o in vectors), default=16) // 8
    return places(frozenset().union(*kept), lanes)


def _exits(cfg: Cfg, blocks: Collection[int], preheader: Block | None) -> tuple[int, ...]:
    sources = [cfg.blocks[b] for b in blocks] + ([preheader] if preheader is not None else [])
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


def _has_room(cfg: Cfg, place: int, entry: int, constant: ReadOnly) -> bool:
    """Returns whether a jump fits at the start of block ``place``, without reaching another block or passing ``entry``; the
    padding behind a block that does not go on is room, too."""
    block = cfg.blocks[place]
    end = place
    for insn in block.insns:
        if place <= entry < insn.end and entry != place:
            return False
        end = insn.end
        if end - place >= JUMP_BYTES:
            return True
    if not block.insns or block.insns[-1].mnemonic not in ("ret", "jmp"):
        return False
    end += len(padding(constant(end, ALIGNMENT) or b""))
    return end - place >= JUMP_BYTES and not any(place < other < place + JUMP_BYTES for other in cfg.blocks)


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
