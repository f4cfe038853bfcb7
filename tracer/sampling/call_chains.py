"""The callers of the function that a sample fell in: return addresses found in the copy of the stack that was kept with
it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from layout_advise.tracer.program.modules import KERNEL_START, Modules
from layout_advise.tracer.program.unwind import RBP, RSP, Frame

Chain = tuple[int, ...]
"""Run-time addresses of instructions: the sample's own, then the calls that led there, the innermost first. It ends where
the stack that was kept does, or where the unwind tables do not tell."""

STACK_WORDS = 512
SAMPLED = np.dtype([("rip", "<u8"), ("rsp", "<u8"), ("rbp", "<u8"), ("words", "<u8", (STACK_WORDS,))])
"""``struct la_sampled`` of the agent."""
DEEPEST = 64


def call_chains(sampled: NDArray[np.void], modules: Modules) -> list[Chain]:
    """The chain of each record of ``sampled`` (dtype :data:`SAMPLED`)."""
    unwinder = _Unwinder(modules)
    return [
        unwinder.chain(int(one["rip"]), int(one["rsp"]), int(one["rbp"]), one["words"].tolist()) for one in sampled
    ]  # fmt: skip


class _Unwinder:
    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self.frames: dict[int, Frame | None] = {}

    def chain(self, rip: int, rsp: int, rbp: int, words: Sequence[int]) -> Chain:
        """``words`` are the stack from ``rsp`` on."""
        found, bottom = [rip], rsp
        while len(found) < DEEPEST:
            frame = self._frame(found[-1])
            if frame is None or frame.register not in (RSP, RBP):
                break
            cfa = (rsp if frame.register == RSP else rbp) + frame.offset
            back = _word(words, bottom, cfa - 8)
            if not back or cfa <= rsp:
                break
            if frame.rbp is not None:
                saved = _word(words, bottom, cfa + frame.rbp)
                rbp = saved if saved is not None else 0
            rsp = cfa
            found.append(back - 1)  # the call itself: what follows it may belong to another line, loop or function
        return tuple(found)

    def _frame(self, address: int) -> Frame | None:
        if address not in self.frames:
            module = self.modules.module_at(address) if address < KERNEL_START else None
            self.frames[address] = module.binary.frame_at(address - module.load_base) if module is not None else None
        return self.frames[address]


def _word(words: Sequence[int], bottom: int, address: int) -> int | None:
    """The word of the kept stack at an address; None beyond it."""
    index, odd = divmod(address - bottom, 8)
    return words[index] if not odd and 0 <= index < len(words) else None
