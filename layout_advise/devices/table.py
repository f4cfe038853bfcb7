"""Times of regions at places, and what it costs to move structures between these, from reports of several machines.

A *place* is a machine with a layout; the first one is this machine with the present layout. Structures that some layout lays
out together are one unit, which is moved as a whole; each other structure is one by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from layout_advise.compare.match import matched_regions, matched_structures
from layout_advise.devices.profile import MachineProfile
from layout_advise.plan.placed import MovedStructure, Use
from layout_advise.plan.whole_program import UNCHANGED, Gain
from layout_advise.regions.over_regions import best_variant, gain_around, layout_of
from layout_advise.regions.planned import conversion_ns
from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.hotspot import HotspotReport

Memory = tuple[str, int]
"""A structure by its address and bytes: the same in all regions of a run."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Structures that are moved together: their ``bytes``, and in which layouts (ids) they are others."""

    memory: frozenset[Memory]
    bytes: int
    layouts: frozenset[str]


@dataclass(frozen=True, slots=True)
class RegionThere:
    """A region as another machine ran it: how much longer an entry takes there (a gain below 1), and its report."""

    gain: Gain
    hotspot: HotspotReport


@dataclass(frozen=True, slots=True)
class MachineTable:
    """``share`` of the program's present time that each region has for itself, ``entries`` how often each is entered,
    ``whole`` the program's present time in ns, ``layouts`` ids of those that are tried besides the present one."""

    hotspots: tuple[HotspotReport, ...]
    shares: tuple[float, ...]
    entries: tuple[int, ...]
    whole: float
    layouts: tuple[str, ...]
    profiles: tuple[MachineProfile, ...]
    elsewhere: tuple[tuple[RegionThere | None, ...], ...]
    """By machine and region; None where it has no times of the same work."""

    @property
    def places(self) -> list[tuple[int, int]]:
        """Machine (0 is this one) and layout (0 is the present one)."""
        return [(m, n) for m in range(len(self.profiles) + 1) for n in range(len(self.layouts) + 1)]

    def units(self) -> list[Unit]:
        """The structures of all regions, those of one layout together, and those without one that are all used alike."""
        graph: nx.Graph[Memory | str] = nx.Graph()
        for hotspot in self.hotspots:
            own = _memory(hotspot)
            graph.add_nodes_from(own.values())
            for candidate in hotspot.candidates:
                if (name := layout_of(candidate)) in self.layouts:
                    graph.add_edges_from((name, own[s]) for s in candidate.structures if s in own)
        found: dict[tuple[object, ...], Unit] = {}
        for part in nx.connected_components(graph):
            memory = frozenset(one for one in part if isinstance(one, tuple))
            unit = Unit(memory, sum(size for _, size in memory), frozenset(one for one in part if isinstance(one, str)))
            if memory:
                used = [self.uses(region, [unit]).get(0) for region in range(len(self.hotspots))]
                alike: tuple[object, ...] = (*used, bool(self.used_between([unit])))
                key = tuple(sorted(unit.layouts)) if unit.layouts else alike
                found[key] = _united(found[key], unit) if key in found else unit
        return sorted(found.values(), key=lambda unit: sorted(unit.memory))

    def uses(self, region: int, units: Sequence[Unit]) -> dict[int, Use]:
        """The units that a region uses."""
        found: dict[int, Use] = {}
        hotspot = self.hotspots[region]
        for number, unit in enumerate(units):
            own = [s for s in hotspot.structures if (s.base, s.bytes) in unit.memory]
            if own:
                found[number] = "changed" if any(f.writes for s in own for f in s.fields) else "read"
        return found

    def used_between(self, units: Sequence[Unit]) -> dict[int, Use]:
        """The units that other code of the program uses between entries, or of which that is not known."""
        names = {h.symbol for h in self.hotspots} | {h.name for h in self.hotspots}
        found: dict[int, Use] = {}
        for number, unit in enumerate(units):
            own = [s for h in self.hotspots for s in h.structures if (s.base, s.bytes) in unit.memory]
            foreign = any(user.symbol not in names and user.when == "between" for s in own for user in s.users)
            if foreign or any(s.users_unknown is not None for s in own):
                found[number] = "changed"
        return found

    def times(self, region: int, end: str = "median") -> tuple[float, ...]:
        """ns of one entry by place, infinite where they are not known, with ``median``, ``lo`` or ``hi`` of all gains."""
        here = self.shares[region] * self.whole / max(self.entries[region], 1)
        found = []
        for machine, layout in self.places:
            other = self.elsewhere[machine - 1][region] if machine else None
            gains = [other.gain if other is not None else None] if machine else []
            gains.append(self._layout_gain(region, machine, layout))
            known = [gain for gain in gains if gain is not None]
            factors = [float(getattr(gain, end)) for gain in known]
            found.append(here / float(np.prod(factors)) if len(known) == len(gains) else np.inf)
        return tuple(found)

    def _layout_gain(self, region: int, machine: int, layout: int) -> Gain | None:
        """The gain of a layout over the present one on the same machine."""
        if layout == 0:
            return UNCHANGED
        name, hotspot = self.layouts[layout - 1], self.hotspots[region]
        if not self._lays_out(hotspot, name):
            return UNCHANGED
        found = best_variant(hotspot, name) if machine == 0 else self._there(region, machine, name)
        if found is None:
            return None
        gain = gain_around(found)
        return Gain(gain.median, gain.lo, gain.hi)

    def _lays_out(self, hotspot: HotspotReport, name: str) -> bool:
        """Tells whether the region uses memory that a layout, as any region has it, lays out anew."""
        laid = {
            _memory(other)[s]
            for other in self.hotspots
            for c in other.candidates
            if layout_of(c) == name
            for s in c.structures
            if s in _memory(other)
        }
        return bool(set(_memory(hotspot).values()) & laid)

    def _there(self, region: int, machine: int, name: str) -> CandidateReport | None:
        """The fastest measured variant of the same layout in the report of another machine."""
        other = self.elsewhere[machine - 1][region]
        if other is None:
            return None
        variants = [best_variant(other.hotspot, there) for there in same_layouts(self.hotspots[region], other.hotspot, name)]
        measured = [one for one in variants if one is not None]
        return max(measured, key=lambda one: one.speedup.median if one.speedup is not None else 0.0, default=None)

    def moved(self, units: Sequence[Unit]) -> list[MovedStructure]:
        """ns that each unit takes from place to place; infinite where it goes by way of others, or that is not known."""
        places = self.places
        return [MovedStructure(tuple(tuple(self._move(u, a, b) for b in places) for a in places), 0) for u in units]

    def _move(self, unit: Unit, old: tuple[int, int], new: tuple[int, int]) -> float:
        before, after = (layout if layout and self.layouts[layout - 1] in unit.layouts else 0 for _, layout in (old, new))
        if old[0] != new[0]:
            machine = max(old[0], new[0])
            if before != after or min(old[0], new[0]):  # data goes by way of this machine, in the layout that it has
                return float(np.inf)
            link = self.profiles[machine - 1].machine.transfer
            return link.latency_ns * len(unit.memory) + 1e9 * self._bytes(unit, before) / link.bytes_per_second
        if before == after:
            return 0.0
        if before and after:
            return float(np.inf)
        costs = self._conversion(old[0], self.layouts[max(before, after) - 1])
        return float(np.inf) if costs is None else costs[0 if after else 1]

    def _bytes(self, unit: Unit, layout: int) -> int:
        """The part of a unit that is sent: all of it, and of a new layout its buffers and what is left where it was."""
        if not layout:
            return unit.bytes
        name = self.layouts[layout - 1]
        sizes = [c.bytes.after for h in self.hotspots for c in h.candidates if layout_of(c) == name]
        return max([unit.bytes, *sizes])

    def _conversion(self, machine: int, name: str) -> tuple[float, float] | None:
        """A conversion to a layout and back, in ns, as it was timed on that machine."""
        if machine == 0:
            return conversion_ns(self.hotspots, name)
        pairs = zip(self.hotspots, self.elsewhere[machine - 1], strict=True)
        there = [(here, other.hotspot) for here, other in pairs if other is not None]
        costs = [conversion_ns((b,), one) for a, b in there for one in same_layouts(a, b, name)]
        known = [cost for cost in costs if cost is not None]
        return (max(into for into, _ in known), max(back for _, back in known)) if known else None


def _united(one: Unit, other: Unit) -> Unit:
    return Unit(one.memory | other.memory, one.bytes + other.bytes, one.layouts)


def same_layouts(here: HotspotReport, there: HotspotReport, name: str) -> list[str]:
    """The ids that a layout of a region has in the report of another machine."""
    names = {m.new.id: m.old.id for m in matched_structures(here, there) if m.old is not None and m.new is not None}
    wanted = {_layout_key(c, {}) for c in here.candidates if layout_of(c) == name}
    return sorted({layout_of(c) for c in there.candidates if _layout_key(c, names) in wanted})


def _layout_key(candidate: CandidateReport, names: Mapping[str, str]) -> tuple[object, ...]:
    """Equal for one layout of the same structures, whatever the run calls them."""
    structures = tuple(sorted(names.get(one, one if not names else f"there {one}") for one in candidate.structures))
    lengths = candidate.block, candidate.blocks, candidate.classes
    return candidate.families, *lengths, structures, tuple(sorted(candidate.arrays))


def elsewhere(
    hotspots: Sequence[HotspotReport], profile: MachineProfile
) -> tuple[tuple[RegionThere | None, ...], list[str]]:
    """The regions on another machine, and what is missing there."""
    pairs = {id(a): b for a, b in matched_regions(hotspots, profile.report.hotspots)}
    found: list[RegionThere | None] = []
    missing: list[str] = []
    for hotspot in hotspots:
        there = pairs.get(id(hotspot))
        gain = _machine_gain(hotspot, there) if there is not None else "it was not studied there"
        if isinstance(gain, str) or there is None:
            missing.append(f"{hotspot.name or hotspot.symbol} on {profile.machine.name}: {gain}")
            found.append(None)
        else:
            found.append(RegionThere(gain, there))
    return tuple(found), missing


def _machine_gain(here: HotspotReport, there: HotspotReport) -> Gain | str:
    """The time of a call here over that there, or why it is not known. The interval is that of all processes of both."""
    sizes = [(m.old, m.new) for m in matched_structures(here, there)]
    if any(a is None or b is None or a.bytes != b.bytes for a, b in sizes):
        return "its structures are others there"
    if here.calls != there.calls:
        return f"it was called {there.calls} times there, {here.calls} times here"
    for kind in ("ns_in_situ", "ns_steady"):
        times = getattr(here.original, kind), getattr(there.original, kind)
        if all(times):
            median = times[0] / times[1]
            own, others = here.original.ns_processes, there.original.ns_processes
            if kind == "ns_in_situ" and own and others:
                return Gain(median, min(median, min(own) / max(others)), max(median, max(own) / min(others)))
            return Gain(median, median, median)
    return "its calls were not timed in the same way"


def _memory(hotspot: HotspotReport) -> dict[str, Memory]:
    return {s.id: (s.base, s.bytes) for s in hotspot.structures}
