"""A hotspot that is entered too seldom: the hottest loop nest of it that is entered often enough takes its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path

from layout_advise.choose.calls import ChosenCall
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.probed_calls import probe_calls
from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings
from layout_advise.errors import LayoutAdviseError, NotLiftedError, SnapshotError
from layout_advise.mockup.machine.loop_regions import LoopNest, hottest_nests
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.sampling.call_chains import Chain
from layout_advise.tracer.sampling.probe import Probe


def find_loop(
    settings: Settings,
    main: ElfBinary,
    profiled: Profiled,
    stdin: Path | None,
    least: int = CHOOSE.fewest_calls,
    beside: Collection[int] = (),
) -> tuple[Profiled, Probe, ChosenCall] | str:
    """The outermost loop nest, on the way to the hottest loop that is ``beside`` those with these heads, that is entered at
    least three times (``least``); with the count and times of its entries. Otherwise why there is none, as the end of a
    sentence."""
    modules = Modules(profiled.run.mappings, main, profiled.module)
    nests, why = nests_of(settings, profiled, modules, beside=beside)
    for nest in nests:
        if isinstance(nest, NotLiftedError):
            why = f"its loop at {place(profiled, nest.address)} cannot be stopped at: {nest.reason}"
            continue
        found = profiled.of_nest(nest, modules)
        if found.share < CHOOSE.least_loop_share:
            break
        try:
            seen, chosen = probe_calls(settings, found, stdin)
        except SnapshotError as error:
            why = f"its loop at {place(profiled, nest.head)} cannot be stopped at: {error.why or error.what}"
            continue
        except LayoutAdviseError as error:
            why = f"its loop at {place(profiled, nest.head)}: {error.line()}"
            continue
        if seen.calls >= least:
            return found, seen, chosen
        why = f"so is its hottest loop, at {place(profiled, nest.head)} (entered {seen.calls} times)"
    return why


def nests_of(
    settings: Settings, profiled: Profiled, modules: Modules, chunk: int = 0, beside: Collection[int] = ()
) -> tuple[list[LoopNest | NotLiftedError], str]:
    """The nests of the hotspot's function as :func:`hottest_nests` has them; and where there is none the reason, as the end
    of a sentence."""
    if settings.backend not in ("auto", "clone"):
        return [], "its loops can be traced by the clone only"
    if profiled.threaded:
        return [], "the loops of a parallel region are not measured apart"
    function = profiled.module.region(profiled.function, 0, callees=True)
    try:
        return list(hottest_nests(function, samples_of(profiled, modules), chunk, beside)), "it has no hot loop"
    except NotLiftedError as error:
        return [], f"its loops are not known ({error.instruction} at {error.address:#x}: {error.reason})"


def samples_of(profiled: Profiled, modules: Modules) -> Counter[int]:
    """How many samples fell on each address (of the file) of the hotspot, or in what was called there."""
    found: Counter[int] = Counter()
    for chain in profiled.chains:
        inside = [
            a for a in _in_module(chain, modules, profiled.module) if profiled.module.function_at(a) == profiled.function
        ]
        found.update(inside[:1] or _in_module(chain[:1], modules, profiled.module))
    return found


def _in_module(chain: Chain, modules: Modules, module: ElfBinary) -> list[int]:
    """The addresses in the file of those of ``chain`` that are of ``module``."""
    found = [(address, modules.module_at(address)) for address in chain]
    return [a - m.load_base for a, m in found if m is not None and m.binary.path == module.path]


def place(profiled: Profiled, address: int) -> str:
    """``file:line`` of an address of the file, else the address."""
    line = profiled.module.line(address)
    return line.short() if line else f"{address:#x}"
