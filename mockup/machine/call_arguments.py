"""The registers that a function which is called takes arguments in."""

from __future__ import annotations

from functools import lru_cache

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.machine.call_abi import INTEGERS, KEPT
from layout_advise.mockup.machine.cfg import build_cfg
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.machine.liveness import KNOWN, Liveness
from layout_advise.tracer.code.region import CodeRange, Region

MOST_BYTES = 1 << 14
"""Of the code of a function that is looked at."""
_LANES = 2


def arguments_of(path: str, load_base: int, target: int | None, name: str | None) -> frozenset[Gpr | Lane] | None:
    """The places that the function ``name`` at the run-time address ``target`` may read before it writes them, of those that
    a caller may change; None where that is not known. Those of some library functions are known by their names, those of a
    function in the file at ``path`` by its code."""
    if name in KNOWN:
        integers, floats = KNOWN[name or ""]
        return frozenset((*INTEGERS[:integers], *(Lane(number, 0) for number in range(floats))))
    return None if target is None else _read_first(path, load_base, target)


@lru_cache(maxsize=256)
def _read_first(path: str, load_base: int, target: int) -> frozenset[Gpr | Lane] | None:
    image = open_image(path, load_base)
    code = image.function_code(target)
    if not 0 < len(code) <= MOST_BYTES:
        return None
    return read_first(Region(image.name_of(target) or "", "function", target, (CodeRange(target, code),), path, load_base))


def read_first(region: Region) -> frozenset[Gpr | Lane] | None:
    """The places that the code of ``region`` may read before it writes them, of those that a caller may change: arguments.
    None where that is not known."""
    try:
        live = Liveness(build_cfg(region, indirect_calls=True, loops=False)).at_start[region.entry]
    except NotLiftedError:
        return None
    places: set[Gpr | Lane] = {Gpr(number) for kind, number in live if kind == "g"}
    places |= {Lane(number, index) for kind, number in live if kind == "v" for index in range(_LANES)}
    return frozenset(places.intersection(KEPT))
