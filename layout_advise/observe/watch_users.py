"""Watching who else uses the hotspot's structures: one more run of the program, thrown away afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePath

from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.observe.case import Case
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_users import CodePlaces, Usage, UserPlacement, placement, usage
from layout_advise.observe.policy import OBSERVE
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.ptrace import SYSCALL_CODE
from layout_advise.tracer.process.seized import Seized
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.trace.trace import Allocation
from layout_advise.tracer.trace.trace import Mapping as Mapped
from layout_advise.tracer.watch.user_watch import UserWatch
from layout_advise.tracer.watch.watched import PAGE, Course, OwnCode, Pages, Watched, whole_pages

_SYSTEM = (
    *("libc.", "libm.", "libstdc++.", "libgcc_s.", "libpthread.", "ld-linux", "librt.", "libdl.", "libmvec."),
    *("libgomp.", "libomp.", "libomp-", "libgfortran.", "libquadmath.", "agent-"),
)
_WORD = (1 << 64) - 1
_RSP = 4
ORDERS = (1 << 40) - 1
"""Of a word of the agent's table of blocks, what counts allocations."""


def watched(case: Case, seen: Observation) -> Observation:
    """``seen`` with who else uses its structures, for which the program is run once more."""
    case.space.progress.step("watching who else uses the data")
    return replace(seen, users=find_users(case, seen))


def unwatched(seen: Observation) -> Observation:
    """``seen`` where nothing could be measured: nobody is watched, and it is told that this is not known."""
    reason = "it was not watched, as nothing could be measured"
    return replace(seen, users={s.id: Usage(reason=reason) for s in seen.structures})


def find_users(case: Case, seen: Observation) -> dict[str, Usage]:
    """By structure: who else was seen to use it; never raises, what is not known has its reason."""
    watchable = {d.structure.id: refusal_remark(d.structure) for d in seen.derived}
    structures = [d.structure for d in seen.derived if watchable[d.structure.id] is None]
    found = {name: Usage(reason=reason) for name, reason in watchable.items() if reason is not None}
    if not structures:
        return found
    if case.profiled.entry.chunk:
        why = "a chunk of a loop's iterations is studied, behind which the loop goes on"
        return found | {s.id: Usage(reason=why) for s in structures}
    try:
        return found | _watch(case, seen, structures)
    except (LayoutAdviseError, OSError) as error:
        why = error.line() if isinstance(error, LayoutAdviseError) else str(error)
        return found | {s.id: Usage(reason=why) for s in structures}


def refusal_remark(structure: Structure) -> str | None:
    """Why a structure cannot be watched, or None."""
    if not structure.placed:
        return "its objects lie scattered over the heap"
    low, high = whole_pages(*extent(structure))
    if high <= low:
        return "it is smaller than the pages that can be watched"
    return None


def extent(structure: Structure) -> tuple[int, int]:
    """The structure's elements in memory."""
    return structure.base, structure.base + structure.count * structure.element_bytes


def _watch(case: Case, seen: Observation, structures: Sequence[Structure]) -> dict[str, Usage]:
    entry = case.profiled.entry
    program = park(case.settings.command, entry, case.chosen.call, stdin_path=case.stdin, timeout=case.settings.timeout)
    with program:
        blocks = [_block(program, s) for s in structures]
        own_registers, other = program.registers().gpr, seen.trace.registers.gpr
        if own_registers[_RSP] != other[_RSP] or None in blocks:
            why = "the structures lie elsewhere in another run of the program"
            return {s.id: Usage(reason=why) for s in structures}
        watched, modules = watch(program, case, entry, structures, [b for b in blocks if b])
    places = CodePlaces(modules)
    return {s.id: _usage(s, number, watched, places, case.probe.calls) for number, s in enumerate(structures)}


def _usage(structure: Structure, number: int, watched: Watched, places: CodePlaces, calls: int) -> Usage:
    touches = [t for t in watched.touches if t.structure == number]
    users = usage(structure, touches, places, max(calls, watched.last))
    if watched.last == watched.first and not watched.ended:
        why = watched.reason or f"the next call did not come within {OBSERVE.most_watched_seconds:g} s"
        return Usage(users, None, why)
    seen: UserPlacement | None = None
    if watched.last > watched.first:
        seen = placement(touches, places, watched.first, watched.last, watched.gapless)
    return Usage(users, seen, watched.reason or None, watched.ended)


def _block(program: AgentProcess, structure: Structure) -> Allocation | bool | None:
    """The heap block of the structure, True for other memory, None where the block is not there."""
    if structure.kind != "heap":
        return True
    base = structure.block_base or structure.base
    return next((a for a in program.allocations() if a.address <= base < a.address + a.bytes), None)


def watch(
    program: AgentProcess, case: Case, entry: Entry, structures: Sequence[Structure], blocks: Sequence[Allocation | bool]
) -> tuple[Watched, Modules]:
    """Set the parked program off and watch ``structures``; it is dead afterwards."""
    maps = program.mappings()
    tcb = program.registers().fs_base // PAGE * PAGE
    held = [page for number, s in enumerate(structures) for page in pages_of(s, number, maps, blocks[number])]
    memory = [page for page in held if page.end <= tcb - PAGE or tcb + 2 * PAGE <= page.start]  # the kernel writes there
    state, table = program.parked_state(), program.keep_table()
    modules = Modules(maps, case.main)
    base, registers = program.load_base, program.registers()
    course = Course(
        case.chosen.call,
        registers.rip,
        tuple(base + e.address for e in entry.exits),
        base + entry.outlined.address if entry.outlined else 0,
        entry.outlined.register if entry.outlined else 0,
    )
    own = own_code(maps, modules, program)
    with Seized(program.pid) as process:
        gone = gone_blocks(process, table, [b for b in blocks if isinstance(b, Allocation)])
        process.unpark(state, registers)
        for place in entry.exits:  # the agent had led them to itself
            process.write(base + place.address, place.code[:JUMP_BYTES])
        return UserWatch(process, state.thread, course, memory, own, gone).run(
            OBSERVE.watched_seconds, OBSERVE.most_watched_seconds
        ), modules


JUMP_BYTES = 5


def pages_of(structure: Structure, number: int, maps: Sequence[Mapped], block: Allocation | bool = True) -> list[Pages]:
    """The whole pages of a structure, within its ``block`` of the heap, divided where their protection changes."""
    start, end = extent(structure)
    if isinstance(block, Allocation):
        start, end = max(start, block.address), min(end, block.address + block.bytes)
    low, high = whole_pages(start, end)
    found = []
    for m in maps:
        start, end = max(low, m.start), min(high, m.end)
        if start < end:
            bits = sum(bit for letter, bit in (("r", 1), ("w", 2), ("x", 4)) if letter in m.permissions)
            found.append(Pages(start, end, bits, number))
    return found


def own_code(maps: Sequence[Mapped], modules: Modules, program: AgentProcess) -> OwnCode:
    """The program's own code, without the libraries of the system."""
    pages, gate = [], 0
    for m in maps:
        if "x" not in m.permissions:
            continue
        if m.path.startswith("/") and not PurePath(m.path).name.startswith(_SYSTEM):
            pages.append(Pages(m.start, m.end, 5 | (2 if "w" in m.permissions else 0)))
        elif not gate and m.path != "[vsyscall]":
            at = program.read(m.start, m.end - m.start).find(SYSCALL_CODE)
            gate = m.start + at if at >= 0 else 0
    return OwnCode(tuple(pages), lambda address: _is_start(modules, address), gate)


def _is_start(modules: Modules, address: int) -> bool:
    """Whether a function starts there: of a thousand libraries only those are read that are asked for."""
    module = modules.module_at(address)
    function = module.binary.function_at(address - module.load_base) if module is not None else None
    return module is not None and function is not None and function.start + module.load_base == address


def gone_blocks(process: Seized, table: tuple[int, int], blocks: Sequence[Allocation]) -> Callable[[], str]:
    """Asks the agent's table of heap blocks whether these still are the same ones."""
    address, slots = table

    def ask() -> str:
        try:
            return look()
        except OSError:  # it grew, and is elsewhere now
            return "so many blocks are allocated between the calls that its own is lost sight of"

    def look() -> str:
        for block in blocks:
            place = ((block.address >> 4) * 0x9E3779B97F4A7C15 & _WORD) >> 20 & (slots - 1)
            for slot in range(place, place + slots):
                row = process.read(address + slot % slots * 32, 32)
                at, size, order = (int.from_bytes(row[8 * k : 8 * k + 8], "little") for k in range(3))
                if at == block.address:
                    if (size, order & ORDERS) != (block.bytes, block.order):
                        return "its memory is freed and allocated again between the calls"
                    break
                if not at:
                    return "its memory is freed between the calls"
        return ""

    return ask
