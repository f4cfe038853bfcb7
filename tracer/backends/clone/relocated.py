"""Instructions of a region at another place: what they do stays the same, control stays in the copy as long as it can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layout_advise.errors import RefusedError
from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.backends.clone.header import CALL, JMP, SAVED_RAX, TARGET, note_called, slot
from layout_advise.tracer.code.instructions import Instruction
from layout_advise.tracer.code.operands import RAX


@dataclass(frozen=True, slots=True)
class Relocated:
    """Copies of the instructions of ``code``, written to ``out``. Labels are ``(copy, address)``; indirect jumps and calls
    go by the dispatcher of their copy (:mod:`~layout_advise.tracer.backends.clone.dispatcher`). ``called`` has the numbers
    of the indirect calls of which it is noticed what they call; the ABI gives no flags to a callee."""

    out: Assembler
    code: Mapping[int, Instruction]
    called: Mapping[int, int] = field(default_factory=dict)

    def go(self, opcode: bytes, copy: str, target: int) -> None:
        """A direct branch to the instruction at ``target``: in this image if it is here, else where it has always been."""
        self.out.branch(opcode, (copy, target) if target in self.code else target)

    def connect(self, insn: Instruction, copy: str) -> None:
        """A jump where the next instruction in memory is not the next one in the image."""
        if insn.falls_through and insn.end not in self.code:
            self.go(JMP, copy, insn.end)

    def put(self, insn: Instruction, copy: str, *, once: bool = False) -> None:
        """The instruction itself; ``copy`` is where its jumps stay. ``once``: without its prefix that repeats it."""
        out = self.out
        if insn.flow == "jump":
            assert insn.target is not None
            self.go(JMP, copy, insn.target)
        elif insn.flow == "call":
            assert insn.target is not None
            self.go(CALL, copy, insn.target)
        elif insn.flow == "branch":
            assert insn.target is not None
            self.go(bytes([0x0F, 0x80 | _condition(insn.code)]), copy, insn.target)
        elif insn.flow == "loop":
            assert insn.target is not None
            out.raw(insn.code[:-1] + b"\x02\xeb\x05")  # loop +2; jmp +5
            self.go(JMP, copy, insn.target)
        elif insn.flow in ("jump-indirect", "call-indirect"):
            self._indirectly(insn, copy)
        elif insn.relative_at >= 0:
            out.raw(insn.code[: insn.relative_at])
            rest = insn.code[insn.relative_at + 4 :]
            out.relative(insn.relative_to, len(rest))
            out.raw(rest)
        elif insn.repeat and once:
            at = insn.code.index(insn.repeat)
            out.raw(insn.code[:at] + insn.code[at + 1 :])
        else:
            out.raw(insn.code)

    def _indirectly(self, insn: Instruction, copy: str) -> None:
        """Fetches the original target; the dispatcher finds out where it is in this image."""
        out = self.out
        out.store(slot(out, SAVED_RAX), RAX)
        if insn.register is not None:
            out.store(slot(out, TARGET), insn.register)
        else:
            out.load(RAX, insn.accesses[0].memory)
            out.store(slot(out, TARGET), RAX)
        number = self.called.get(insn.address)
        if number is not None:
            note_called(out, number)
        if number is not None or insn.register is None:
            out.load(RAX, slot(out, SAVED_RAX))
        out.branch(JMP if insn.flow == "jump-indirect" else CALL, f"dispatch {copy}")


def _condition(code: bytes) -> int:
    """The condition of a jcc: in the low half of its opcode byte, short (7x) or near (0F 8x)."""
    for at, byte in enumerate(code):
        if byte == 0x0F:
            return code[at + 1] & 15
        if 0x70 <= byte < 0x80:
            return byte & 15
    raise RefusedError("no clone", f"{code.hex()} is no conditional jump")
