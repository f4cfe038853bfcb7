"""Which instruction stops the lifter: functions with floating-point loops in real binaries, checked against the table.

    python benchmarks/lift_coverage.py FILE...      ELF files with function symbols (libraries: dynamic ones suffice)

A function counts when a natural loop of it holds an instruction on vector registers. It passes when its control-flow graph
can be built and every reachable instruction has semantics; calls pass here (whether the callee is known libm is for the
lifter). Prints per file the share that passes, then the reasons and mnemonics that stopped the others.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.cfg import build_cfg
from layout_advise.mockup.disasm import Insn, Register, decode
from layout_advise.mockup.semantics import semantics
from layout_advise.tracer.code import CodeRange, Region

_LARGEST = 20_000


def functions(path: Path) -> Iterator[Region]:
    """Every function of the file that has a size."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
        sections = [(s["sh_addr"], s.data()) for s in elf.iter_sections() if s["sh_flags"] & 4]
        seen: set[int] = set()
        if not isinstance(table, SymbolTableSection):
            return
        for symbol in table.iter_symbols():
            start, size = symbol["st_value"], symbol["st_size"]
            if symbol["st_info"]["type"] != "STT_FUNC" or not 0 < size < _LARGEST or start in seen:
                continue
            seen.add(start)
            for at, data in sections:
                if at <= start and start + size <= at + len(data):
                    code = data[start - at : start - at + size]
                    yield Region(symbol.name, "function", start, (CodeRange(start, code),), str(path), 0)


def is_vector(insn: Insn) -> bool:
    """Whether the instruction names a vector register."""
    return any(isinstance(op, Register) and op.kind == "vector" for op in insn.operands)


def stops(region: Region) -> tuple[str, str] | bool | None:
    """False: not a floating-point loop; None: passes; else (reason, mnemonic) of the first instruction that stops it."""
    if not any(is_vector(insn) for insn in decode(region).values()):
        return False
    try:
        cfg = build_cfg(region)
    except NotLiftedError as error:
        return error.reason, error.instruction.split()[0]
    looped = {start for loop in cfg.loops for start in loop.blocks}
    if not any(is_vector(insn) for start in looped for insn in cfg.blocks[start].insns):
        return False
    for block in cfg.blocks.values():
        for insn in block.insns:
            try:
                semantics(insn)
            except NotLiftedError as error:
                return error.reason, insn.mnemonic
    return None


def main() -> None:
    """Prints the table for the files named on the command line."""
    reasons: Counter[tuple[str, str]] = Counter()
    total = passed = 0
    for name in sys.argv[1:]:
        found = [result for result in map(stops, functions(Path(name))) if result is not False]
        good = sum(result is None for result in found)
        reasons.update(result for result in found if isinstance(result, tuple))
        total, passed = total + len(found), passed + good
        print(f"{good:5d} of {len(found):5d}  {Path(name).name}")
    print(f"{passed:5d} of {total:5d}  together")
    for (reason, mnemonic), count in reasons.most_common(25):
        print(f"{count:5d}  {mnemonic:12s} {reason}")


if __name__ == "__main__":
    main()
