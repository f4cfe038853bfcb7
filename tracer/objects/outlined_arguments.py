"""The variables that the body of a parallel region is handed, at the call that starts it.

gcc hands a body one record with all of them (``GOMP_parallel(body, record, ...)``), and describes each variable as standing
in it; clang hands over their addresses (``__kmpc_fork_call(place, count, body, ...)``), behind two numbers of the thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import capstone

from layout_advise.tracer.code.decoder import GPR, disassemble
from layout_advise.tracer.process.patching import RDI, RDX
from layout_advise.tracer.program.modules import Module, Modules
from layout_advise.tracer.program.openmp_regions import is_region_body, is_runtime
from layout_advise.tracer.program.symbols import Function
from layout_advise.tracer.program.variables import Variable, locals_at
from layout_advise.tracer.trace.trace import Registers

RSI, RCX, R8, R9 = 6, 1, 8, 9
_HANDED = {RDI: {RDI: RSI}, RDX: {RDX: RCX, RCX: R8, R8: R9}}
"""By the register that the body's address is in (gcc's runtime, clang's): the body's argument registers, and those that they
are handed on from."""
_FAR = 64
"""Bytes of the body that are looked at: its arguments are in their registers at its beginning only."""


def handed_over(registers: Registers, modules: Modules) -> Iterator[tuple[Variable, int]]:
    """Yields the variables of the body of the parallel region that is about to be started, each with the value of the
    register that its place is told by; nothing where the program does not stand at such a call."""
    here = modules.module_at(registers.rip)
    if here is None or not is_runtime(str(here.binary.path)):
        return
    for register, handed in _HANDED.items():
        found = _body_at(registers.gpr[register], modules)
        if found is not None:
            values = {number: registers.gpr[source] for number, source in handed.items()}
            yield from _variables(*found, values)
            return


def _body_at(address: int, modules: Modules) -> tuple[Module, Function] | None:
    module = modules.module_at(address)
    function = module.binary.function_at(address - module.load_base) if module is not None else None
    if module is None or function is None or module.load_base + function.start != address:
        return None
    return (module, function) if is_region_body(function) else None


def _variables(module: Module, body: Function, values: Mapping[int, int]) -> Iterator[tuple[Variable, int]]:
    seen: set[str] = set()
    code = module.binary.read(body.start, min(body.size, _FAR))
    for address, unchanged in arguments_kept(code, body.start, frozenset(values)):
        for variable in locals_at(module.binary.debug, address):
            place = variable.place
            if variable.name not in seen and place.kind != "memory" and place.number in unchanged:
                seen.add(variable.name)
                yield variable, values[place.number]


def arguments_kept(code: bytes, start: int, registers: frozenset[int]) -> Iterator[tuple[int, frozenset[int]]]:
    """Yields the instructions at the beginning of ``code`` at ``start``, each with those of ``registers`` that hold there
    what they held at the first one, up to its first call or jump."""
    for insn in disassemble(code, start):
        yield insn.address, registers
        if insn.group(capstone.CS_GRP_CALL) or insn.group(capstone.CS_GRP_JUMP):
            return
        registers -= {GPR.get(one, -1) for one in insn.regs_access()[1]}
