"""From sampled instruction addresses to the functions where the time goes, and to the one to study."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layout_advise.errors import ProgramError
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.modules import KERNEL_START, Modules
from layout_advise.tracer.program.symbols import Function, demangle
from layout_advise.tracer.sampling.call_chains import Chain

# Libraries whose functions a user does not lay data out for.
_SYSTEM = re.compile(
    r"^(libc|ld|ld-linux.*|libm|libpthread|libgomp|libomp|libiomp5|libgcc_s|libstdc\+\+|linux-vdso|libdl|librt)[.-]"
)
FAR_HOTTER = 3.0
_ENTRIES = ("main", "_start", "__libc_start_main", "MAIN__")


OUTSIDE = 0
"""The address that stands for samples which would have fallen in other processes."""

# Their time is what computing takes, not what the program asks of the system: it counts for the caller.
_MATHEMATICS = re.compile(r"^(libm|libmvec)[.-]")


@dataclass(frozen=True, slots=True)
class Hotspot:
    """A function with its share of the samples (0..1), with the pieces (``.cold``, ``.part``) that belong to its region.

    ``module`` is the file's path, or ``[kernel]``, ``[vdso]``, ``[unknown]``, ``[other processes]``: then ``symbol`` is the
    same word and ``address`` 0. ``address`` is the entry in the file. ``file`` and ``line`` are where most samples fell.
    """

    symbol: str
    demangled: str
    module: str
    share: float
    samples: int
    file: str | None = None
    line: int | None = None
    address: int = 0
    pieces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """The hotspot to study, and why hotter ones were passed over: (symbol, reason)."""

    hotspot: Hotspot
    skipped: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Group:
    leader: Function
    samples: int = 0
    pieces: tuple[str, ...] = ()
    hottest: tuple[int, int] = (0, 0)  # samples, file address


def rank(chains: Sequence[Chain], modules: Modules) -> list[Hotspot]:
    """The functions in which samples (run-time instruction addresses, each with the calls that led there) fell, hottest
    first; shares sum to 1.

    What fell in the mathematical library counts for its caller. A ``.cold`` or ``.part`` piece counts for its function, if
    that function exists; specialised copies (``.constprop``, ``.isra``) and OpenMP bodies have entries of their own and are
    ranked by themselves.
    """
    groups: dict[tuple[str, int], _Group] = {}
    opened: dict[str, ElfBinary] = {}
    others: Counter[str] = Counter()
    for address, count in Counter(_credited(chain, modules) for chain in chains).items():
        where = _resolve(address, modules)
        if isinstance(where, str):
            others[where] += count
            continue
        binary, function, vaddr = where
        opened[str(binary.path)] = binary
        leader = leader_of(binary, function)
        group = groups.setdefault((str(binary.path), leader.start), _Group(leader))
        group.samples += count
        if function != leader and function.name not in group.pieces:
            group.pieces += (function.name,)
        group.hottest = max(group.hottest, (count, vaddr))
    total = max(len(chains), 1)
    result = [Hotspot(word, word, word, n / total, n) for word, n in others.items()]
    result += _named(groups, opened, total)
    return sorted(result, key=lambda h: (-h.samples, h.symbol))


def _credited(chain: Chain, modules: Modules) -> int:
    """The address that a sample counts for: the innermost outside the mathematical library."""
    for address in chain:
        mapping = modules.mapping_at(address)
        if mapping is None:
            break
        if not _MATHEMATICS.match(os.path.basename(mapping.path)):
            return address
    return chain[0]


def share_within(chains: Sequence[Chain], modules: Modules, module: ElfBinary, inside: Callable[[int], bool]) -> float:
    """The part of the samples that fell in the code of ``module`` that ``inside`` is true of (by its addresses in the file),
    or in what that had called."""
    known: dict[int, bool] = {}

    def is_inside(address: int) -> bool:
        if address not in known:
            found = modules.module_at(address) if address < KERNEL_START else None
            mine = found is not None and found.binary.path == module.path
            known[address] = mine and found is not None and inside(address - found.load_base)
        return known[address]

    return sum(any(map(is_inside, chain)) for chain in chains) / max(len(chains), 1)


def _named(groups: dict[tuple[str, int], _Group], opened: dict[str, ElfBinary], total: int) -> list[Hotspot]:
    human = demangle([g.leader.name for g in groups.values()])
    result = []
    for (path, start), group in groups.items():
        place = opened[path].line(group.hottest[1])
        hotspot = Hotspot(
            group.leader.name, human[group.leader.name], path, group.samples / total, group.samples,
            place.file if place else None, place.line if place else None, start, group.pieces,
        )  # fmt: skip
        result.append(hotspot)
    return result


def _resolve(address: int, modules: Modules) -> tuple[ElfBinary, Function, int] | str:
    if address == OUTSIDE:
        return "[other processes]"
    if address >= KERNEL_START:
        return "[kernel]"
    mapping = modules.mapping_at(address)
    if mapping is None:
        return "[unknown]"
    if mapping.path in ("[vdso]", "[vsyscall]"):
        return "[vdso]"
    module = modules.module(mapping.path)
    if module is None:
        return "[unknown]"
    vaddr = address - module.load_base
    function = module.binary.function_at(vaddr)
    if function is not None:
        return module.binary, function, vaddr
    # code without a symbol (the PLT, a stripped library): keep it apart by file
    name = os.path.basename(str(module.binary.path))
    return module.binary, Function(f"[{name}]", 0, 0, True, f"[{name}]", anonymous=True), vaddr


def leader_of(binary: ElfBinary, function: Function) -> Function:
    """The function that a piece belongs to: ``f`` or ``f.constprop.0`` for ``f.constprop.0.cold``; else itself, as a
    ``.part`` that other functions call: its head was inlined in them, and they do not pass the entry of ``f``."""
    if function.clone not in ("cold", "part") or (function.clone == "part" and binary.is_called_by_others(function)):
        return function
    owner = re.sub(r"\.(cold|part)(\.\d+)?$", "", function.name)
    exact = [f for f in binary.functions if f.name == owner]
    same = [f for f in binary.functions if f.parent == function.parent and f.clone not in ("cold", "part")]
    # .part stays a function of its own where its parent was inlined everywhere; several copies: which one is not known
    return exact[0] if exact else (same[0] if len(same) == 1 else function)


def choose(ranking: Sequence[Hotspot], least_share: float = 0.01) -> Choice:
    """The hottest function that can be studied; :class:`ProgramError` where there is none.

    Passed over are the kernel, the C, thread and C++ runtime libraries, code without a symbol, and ``main`` as long as
    there is another one with at least ``least_share`` of the samples: unless it has :data:`FAR_HOTTER` times as many (then
    its loops are the hotspot).
    """
    others = usable(ranking, least_share)
    entry = next((h for h in ranking if h.symbol in _ENTRIES and _usable_entry(h) and h.address), None)
    if entry is not None and others and entry.share >= FAR_HOTTER * others[0].share:
        above = ((h, _unfit(h)) for h in ranking if h.samples > entry.samples and h.share >= least_share)
        return Choice(entry, tuple((h.demangled, f"{h.share:.0%} of the samples, {why}") for h, why in above))
    skipped: list[tuple[str, str]] = []
    last_resort: Hotspot | None = None
    for hotspot in ranking:
        reason = _unfit(hotspot)
        if reason is None and hotspot.share >= least_share:
            return Choice(hotspot, tuple(skipped))
        if reason is not None and hotspot.share >= least_share:
            skipped.append((hotspot.demangled, f"{hotspot.share:.0%} of the samples, {reason}"))
        if reason is not None and hotspot.symbol in _ENTRIES and last_resort is None and _usable_entry(hotspot):
            last_resort = hotspot
    if last_resort is not None:
        return Choice(last_resort, tuple(s for s in skipped if s[0] != last_resort.demangled))
    top = ", ".join(f"{h.demangled} {h.share:.0%}" for h in ranking[:3]) or "no samples at all"
    hint = "let the program run longer, or name a function with --hotspot"
    raise ProgramError("found no hotspot", f"the program's time goes to {top}", hint)


def usable(ranking: Sequence[Hotspot], least_share: float) -> list[Hotspot]:
    """The functions that can be studied and have at least ``least_share`` of the samples, in the order of the ranking."""
    return [hotspot for hotspot in ranking if _unfit(hotspot) is None and hotspot.share >= least_share]


def _usable_entry(hotspot: Hotspot) -> bool:
    return hotspot.symbol in ("main", "MAIN__")


def _unfit(hotspot: Hotspot) -> str | None:
    if hotspot.address == 0:
        known = hotspot.symbol in ("[kernel]", "[vdso]", "[other processes]")
        return "not the program's own code" if known else "code that has no symbol"
    if _SYSTEM.match(os.path.basename(hotspot.module)):
        return f"a function of the system library {os.path.basename(hotspot.module)}"
    if hotspot.symbol in _ENTRIES:
        return "it is entered only once"
    return None
