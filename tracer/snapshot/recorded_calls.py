"""The arguments of consecutive calls, recorded while the program runs: what a batch of short calls is replayed from."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from pathlib import Path

import numpy as np

from layout_advise.errors import ProgramError
from layout_advise.tracer.process.agent_run import agent_run
from layout_advise.tracer.process.channel import MAX_TIMED, Mode, Orders, State
from layout_advise.tracer.process.launch import Start, describe_end, wait_for_end
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.snapshot.between import Between, Room, read_between
from layout_advise.tracer.trace.trace import Registers

RSP = 4
MAX_CALLS = 3 * MAX_TIMED
_GPR = struct.Struct("<16Q")
_XMM = 16
STACK_ARGUMENTS = 256
"""Where the words of the stack above the return address stand in a recorded call."""
STACK_BYTES = 8 * 64
UPPER_HALVES = STACK_ARGUMENTS + STACK_BYTES
"""Where the upper halves of ymm0 to ymm7 stand in a recorded call."""
RECORDED = UPPER_HALVES + 8 * 16
"""Bytes of a recorded call: 16 general registers, xmm0 to xmm7, 64 words of the stack, the upper halves of ymm0 to ymm7."""
AGENT_MEMORY = range(0x5A0000000000, 0x5B0000000000)
"""Addresses at which the agent has memory of its own (``tracer/agent/sys.h``)."""
RETURNED = 48
"""Bytes of what one call returned: rax, rdx, xmm0, xmm1."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Consecutive calls; ``data`` is as the agent wrote it, ``first`` the number of the first one, from 1."""

    first: int
    data: bytes
    between: Between | None = None
    """What the program writes after each of them until the next one; None where that is not known."""

    def __len__(self) -> int:
        return len(self.data) // RECORDED

    def part(self, first: int, count: int) -> Calls:
        """``count`` calls from call number ``first`` on."""
        at = (first - self.first) * RECORDED
        between = self.between.part(first - self.first, count) if self.between is not None else None
        return Calls(first, self.data[at : at + count * RECORDED], between)

    def gpr(self, call: int) -> tuple[int, ...]:
        """The general registers at the entry of the ``call``-th of these (from 0)."""
        return _GPR.unpack_from(self.data, call * RECORDED)

    @property
    def varying(self) -> frozenset[int]:
        """The general registers (in encoding order) that differ between the calls."""
        rows = [self.gpr(k) for k in range(len(self))]
        return frozenset(n for n in range(16) if len({row[n] for row in rows}) > 1)

    @property
    def varying_stack(self) -> tuple[int, ...]:
        """How far from the stack pointer those words above the return address are, in bytes, that differ between the calls:
        arguments in memory, and what else the callers keep there. All of them where the calls come from different depths:
        where they are replayed there is none of them."""
        if not self.from_one_depth:
            return tuple(range(8, STACK_BYTES + 8, 8))
        rows = np.frombuffer(self.data, "<u8").reshape(-1, RECORDED // 8)[:, STACK_ARGUMENTS // 8 : UPPER_HALVES // 8]
        return tuple(8 * (int(n) + 1) for n in np.flatnonzero((rows != rows[:1]).any(axis=0)))

    @property
    def from_one_depth(self) -> bool:
        """Tells whether all calls find the stack pointer at the same place."""
        return RSP not in self.varying

    def at_one_depth(self) -> tuple[int, int]:
        """The longest run of calls that find the stack pointer at the same place: the first of them (from 0), how many."""
        depths = [self.gpr(k)[RSP] for k in range(len(self))]
        runs = [(k, len(list(run))) for k, run in groupby(range(len(depths)), key=lambda k: depths[k])]
        starts = accumulate((length for _, length in runs), initial=0)
        return max(((s, length) for s, (_, length) in zip(starts, runs, strict=False)), key=lambda r: r[1], default=(0, 0))

    def at_lowest(self) -> Calls:
        """The same calls, all with the lowest of their stack pointers: what their callers keep lies above it, so that no
        call overwrites what another one is handed a pointer to."""
        rows = np.frombuffer(self.data, "<u8").reshape(-1, RECORDED // 8).copy()
        if len(rows):
            rows[:, RSP] = rows[:, RSP].min()
        return Calls(self.first, rows.tobytes(), self.between)

    def starts_like(self, registers: Registers, used: Sequence[int]) -> bool:
        """Returns whether the first call is the one that a stopped program is at, as far as the general registers ``used``
        go. What lies in the agent's own memory is no argument: an allocation that it watched left it there."""
        own, now = self.gpr(0), registers.gpr
        return all(own[n] == now[n] or (own[n] in AGENT_MEMORY and now[n] in AGENT_MEMORY) for n in used)


def record_calls(
    command: Sequence[str],
    entry: Entry,
    first: int,
    count: int,
    *,
    stdin_path: Path | None = None,
    timeout: float | None = None,
    room: Room | None = None,
) -> Calls:
    """Run ``command``, its output discarded, until ``count`` calls of ``entry`` from call ``first`` on were recorded, and in
    ``room`` (None: not) what the program writes between them.

    Fewer where the program ends before. Raises :class:`ProgramError` if it cannot be started, crashes or exceeds
    ``timeout`` seconds.
    """
    count = min(count, MAX_CALLS)
    recorded = count + 1 if room is not None else count  # what is written after the last call is known at the next one
    orders = Orders(Mode.RECORD, entry, first=first, timed=recorded)
    tables, heads = {"calls": -(-recorded * RECORDED // 4096) * 4096}, {}
    if room is not None:
        tables, heads = tables | room.table, {"between": room.head}
    with agent_run(Start(command, stdin_path), orders, tables=tables, heads=heads) as (folder, process):
        wait_for_end(process, timeout, "its calls were recorded")
        status = folder.status()
        if process.returncode < 0 or status.state < State.PATCHED:
            why = status.error or describe_end(process.returncode)
            raise ProgramError(f"cannot record calls of {entry.symbol or hex(entry.address)}", why)
        data = (folder.path / "calls").read_bytes()[: min(status.timed, count) * RECORDED]
        return Calls(first, data, read_between(folder.path, count) if room is not None else None)
