"""The regions to look at where one gave no answer: what calls it, and the other functions with many of the samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled, Sampled
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.symbols import Function
from layout_advise.tracer.sampling.call_chains import Chain
from layout_advise.tracer.sampling.hotspots import leader_of, usable

Key = tuple[str, int]
"""A function: its file, its address there."""


def key_of(profiled: Profiled) -> Key:
    """The function that a region is of."""
    return str(profiled.module.path), profiled.function.start


def callers(profiled: Profiled, main: ElfBinary) -> Iterator[Profiled]:
    """Yields the functions that call the region, those with most of its samples first: a leaf's time goes by in them."""
    seen = Sampled.of(profiled, main)
    found: Counter[Key] = Counter()
    known: dict[Key, tuple[ElfBinary, Function]] = {}
    for chain in profiled.chains:
        caller = _caller(chain, profiled, seen)
        if caller is not None:
            key = str(caller[0].path), caller[1].start
            found[key] += 1
            known[key] = caller
    inside = max(round(profiled.share * len(profiled.chains)), 1)
    for key, count in found.most_common():
        if count >= CHOOSE.least_caller_share * inside:
            yield seen.profiled((), *known[key])


def _caller(chain: Chain, profiled: Profiled, seen: Sampled) -> tuple[ElfBinary, Function] | None:
    """The function, of the program's own, that the outermost frame of the region in a chain was called from."""
    functions = [_function(address, seen) for address in chain]
    own = [k for k, one in enumerate(functions) if one is not None and _is(one, profiled)]
    return functions[own[-1] + 1] if own and own[-1] + 1 < len(functions) else None


def _function(address: int, seen: Sampled) -> tuple[ElfBinary, Function] | None:
    where = seen.modules.module_at(address)
    function = where.binary.function_at(address - where.load_base) if where is not None else None
    return (where.binary, leader_of(where.binary, function)) if where is not None and function is not None else None


def _is(one: tuple[ElfBinary, Function], profiled: Profiled) -> bool:
    return (str(one[0].path), one[1].start) == key_of(profiled)


def others(profiled: Profiled, main: ElfBinary) -> Iterator[Profiled]:
    """Yields the other functions with a good part of the samples, the hottest first."""
    seen = Sampled.of(profiled, main)
    for hot in usable(profiled.ranking, CHOOSE.least_other_share):
        other = seen.function_of(hot, main)
        if other is not None and key_of(other) != key_of(profiled):
            yield other


def share_beside(told: Profiled, passed: Sequence[Profiled], main: ElfBinary) -> float:
    """The part of all samples that fell in the regions ``passed``, or in what they had called, and not in ``told``."""
    seen = Sampled.of(told, main)
    beside = sum(not seen.inside(chain, told) and any(seen.inside(chain, one) for one in passed) for chain in told.chains)
    return beside / max(len(told.chains), 1)
