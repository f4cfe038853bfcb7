"""The plan over machines: against all ways tried one by one, in words and pages, and where it cannot be made."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from layout_advise.devices.planned import with_machines
from layout_advise.devices.profile import MachineProfile
from layout_advise.plan.region_order import RegionEntry, RegionLoop, RegionStep, entries, leaves, unrolled
from layout_advise.reports.exports.markdown import markdown
from layout_advise.reports.model.contract import Report, decode, encode
from layout_advise.reports.model.plan import MachinesPlan, PlanMachine, Transfer
from layout_advise.reports.model.structure import UserReport
from layout_advise.reports.pages import html, terminal
from layout_advise.reports.words import plan_words
from tests.layout_advise.devices.two_machines import of_regions, region
from tests.layout_advise.plan.unrolled_places import unrolled_places

BYTES = 80000
"""Of the structure of the reports."""
PLACES = ((0, 0), (0, 1), (1, 0), (1, 1))
"""Machine and layout."""
STEPS: st.SearchStrategy[RegionStep] = st.recursive(
    st.builds(RegionEntry, st.integers(0, 1)),
    lambda inner: st.builds(RegionLoop, st.integers(1, 2), st.lists(inner, min_size=1, max_size=2).map(tuple)),
    max_leaves=3,
)
ORDERS = (
    st.lists(STEPS, min_size=2, max_size=3)
    .map(tuple)
    .filter(lambda steps: len(leaves(steps)) <= 3 and set(leaves(steps)) == {0, 1})
)
GAINS = st.sampled_from((0.25, 0.5, 1.0, 2.0, 4.0))


def profile(there: Report, rate: float = 1e9, latency: float = 0.0, name: str = "two") -> MachineProfile:
    machine = PlanMachine(name, "Other CPU", 2, Transfer(rate, latency), True)
    return MachineProfile(machine, there)


def planned(here: Report, *there: MachineProfile) -> MachinesPlan:
    found = with_machines(here, there).plan
    assert found is not None
    assert found.machines is not None
    return found.machines


def cheapest_by_trying(
    steps: tuple[RegionStep, ...],
    times: list[dict[tuple[int, int], float]],
    changes: tuple[bool, bool],
    moves: dict[tuple[tuple[int, int], tuple[int, int]], float],
) -> float:
    """The least time of all ways: every place for every leaf, and every set of copies between two entries."""
    sets = [frozenset(s) for size in range(1, 5) for s in itertools.combinations(PLACES, size)]
    best = math.inf
    for chosen in itertools.product(PLACES, repeat=len(leaves(steps))):
        costs = dict.fromkeys(sets, math.inf) | {frozenset({(0, 0)}): 0.0}
        total = 0.0
        for number, place in zip(unrolled(steps), unrolled_places(steps), strict=True):
            at = chosen[place]
            total += times[number][at]
            costs = copied(costs, sets, moves)
            after = dict.fromkeys(sets, math.inf)
            for have, cost in costs.items():
                if at in have:
                    left = frozenset({at}) if changes[number] else have
                    after[left] = min(after[left], cost)
            costs = after
        costs = copied(costs, sets, moves)
        best = min(best, total + min(cost for have, cost in costs.items() if have & {(0, 0), (0, 1)}))
    return best


def copied(
    costs: dict[frozenset[tuple[int, int]], float],
    sets: list[frozenset[tuple[int, int]]],
    moves: dict[tuple[tuple[int, int], tuple[int, int]], float],
) -> dict[frozenset[tuple[int, int]], float]:
    """After copies are made and dropped, each from a place that has one."""
    found = dict(costs)
    for have in sets:  # from few places to many
        for source, to in itertools.product(have, set(PLACES) - have):
            more = have | {to}
            found[more] = min(found[more], found[have] + moves.get((source, to), math.inf))
    for have in reversed(sets):
        for place in have if len(have) > 1 else ():
            found[have - {place}] = min(found[have - {place}], found[have])
    return found


@settings(deadline=None, max_examples=30)
@given(
    ORDERS,
    st.tuples(GAINS, GAINS),
    st.tuples(GAINS, GAINS),
    st.tuples(GAINS, GAINS),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from((0.0, 0.01, 1.0)),
    st.sampled_from((1e7, 1e9)),
)
def test_no_way_over_one_and_two_threads_is_cheaper(
    steps: tuple[RegionStep, ...],
    faster: tuple[float, float],
    gains: tuple[float, float],
    gains_there: tuple[float, float],
    changes: tuple[bool, bool],
    ms: float,
    rate: float,
) -> None:
    """Two kinds of threads of one processor as machines: ``faster`` is what two threads gain in each region."""
    often = entries(steps)
    ns, shares = (1e6, 2e6), (0.3, 0.5)
    one = tuple(region(f"r{k}", ns[k], often[k], {1: gains[k]}, ms=ms, writes=int(changes[k]), threads=1) for k in range(2))
    two = tuple(
        region(f"r{k}", ns[k] / faster[k], often[k], {1: gains_there[k]}, ms=2 * ms, writes=int(changes[k]), threads=2)
        for k in range(2)
    )
    plan = planned(of_regions(one, steps, shares), profile(of_regions(two, steps, shares), rate, 500.0))
    whole = min(often[k] * ns[k] / shares[k] for k in range(2))
    entry = [shares[k] * whole / often[k] for k in range(2)]
    times = [
        {(0, 0): t, (0, 1): t / gains[k], (1, 0): t / faster[k], (1, 1): t / faster[k] / gains_there[k]}
        for k, t in enumerate(entry)
    ]
    sent = 500.0 + 1e9 * BYTES / rate
    moves = {((m, n), (m, 1 - n)): ms * (1 + m) * 1e6 for m, n in PLACES}
    moves |= {((m, n), (1 - m, n)): sent for m, n in PLACES}
    least = cheapest_by_trying(steps, times, changes, moves)
    assert plan.program is not None
    assert plan.program.median == pytest.approx(whole / (whole * (1 - sum(shares)) + least))
    assert plan.over_here is not None
    assert plan.over_here.median >= 1 - 1e-9
    assert sum(p.entries for p in plan.places) == sum(often.values())


LOOP = (RegionLoop(100, (RegionEntry(0), RegionEntry(1))),)


def pair(second: float, first: float = 1e6) -> Report:
    """Two regions in turns; an entry of each takes so many ns."""
    return of_regions((region("a", first, 100, {1: 1.0}), region("b", second, 100, {1: 1.0})), LOOP, (0.4, 0.4))


SECOND_FASTER = pair(2.5e5, 2e6)
"""On a machine that is slower for the first region."""


def test_a_region_goes_where_it_gains_more_than_sending_takes() -> None:
    """The second region is four times as fast there; 80 KB go there and back in every turn."""
    near, far = planned(pair(1e6), profile(SECOND_FASTER)), planned(pair(1e6), profile(SECOND_FASTER, 1e8))
    assert [(p.hotspot, p.machine, p.entries) for p in near.places] == [("a", None, 100), ("b", "two", 100)]
    assert near.action == "change"
    sending = 200 * BYTES  # ns at 1 GB/s
    assert near.program is not None
    assert near.program.median == pytest.approx(2.5e8 / (2.5e8 - 100 * 7.5e5 + sending))
    assert near.moving == pytest.approx(sending / 2.5e8)
    assert {p.machine for p in far.places} == {None}
    assert (far.action, far.over_here and far.over_here.median) == ("keep", 1.0)


def test_a_region_that_is_not_in_the_order_stays_as_it_is() -> None:
    """Its part of the time is no gain."""
    only_first = (RegionLoop(100, (RegionEntry(0),)),)

    def run(ns: float) -> Report:
        return of_regions((region("a", ns, 100, {1: 1.0}), region("b", 1e6, 100, {1: 1.0})), only_first, (0.4, 0.4))

    plan = planned(run(1e6), profile(run(2.5e5)))
    assert [(p.hotspot, p.machine) for p in plan.places] == [("a", "two")]
    assert plan.program is not None
    assert plan.program.median == pytest.approx(2.5e8 / (0.6 * 2.5e8 + 100 * 2.5e5 + 2 * BYTES))


def test_it_is_told_in_text_page_markdown_and_json() -> None:
    found = with_machines(pair(1e6), [profile(SECOND_FASTER, 1e9, 2000.0)])
    assert found.plan is not None
    line = plan_words.machines_headline(found.plan.machines)
    assert line.startswith("Over machines: a here (as it is); b on two (as it is): 1.3")
    assert "as fast" in line
    text = terminal.render(found)
    assert line in text
    assert "two: Other CPU, 2 threads; 1 GB/s and 2 µs, stated (as given here), not measured." in text
    assert "Predicted from runs on each machine, and not run so." in text
    page = html.render(found)
    assert "The machine of each region" in page
    assert "<td>b</td><td>two</td><td>as it is</td>" in page
    assert "Over machines: a here" in markdown(found)
    assert decode(encode(found)) == found
    (machine,) = decode(encode(found)).plan.machines.machines  # type: ignore[union-attr]
    assert machine.transfer == Transfer(1e9, 2000.0)


def test_what_other_code_uses_between_entries_is_sent_back_each_time() -> None:
    """Both regions would stay there; code between them uses the structure here."""
    there = profile(pair(5e5, 5e5))
    alone = planned(pair(1e6), there)
    assert {p.machine for p in alone.places} == {"two"}
    assert alone.moving * 2.5e8 == pytest.approx(2 * BYTES)  # there at first, back at the end
    user = UserReport("print_all", "m.c", 7, None, "between", 1, 0, ())
    used = pair(1e6)
    watched = tuple(replace(h, structures=tuple(replace(s, users=(user,)) for s in h.structures)) for h in used.hotspots)
    shared = planned(replace(used, hotspots=watched), there)
    assert shared.moving * 2.5e8 == pytest.approx(4 * 100 * BYTES)


def test_of_one_region_there_is_a_plan_over_machines_alone() -> None:
    def single(ns: float) -> Report:
        return replace(pair(1e6), hotspots=(region("a", ns, 50, {1: 2.0}, ms=0.001),), plan=None, over_regions=())

    found = with_machines(single(1e6), [profile(single(2e5))])
    assert found.plan is not None
    assert found.plan.structures == ()
    assert found.plan.order.text == "a×50"
    machines = found.plan.machines
    assert machines is not None
    assert [(p.hotspot, p.machine, p.candidate, p.entries) for p in machines.places] == [("a", "two", "c1", 50)]
    for text in (terminal.render(found), markdown(found), html.render(found)):
        assert "a on two (c1)" in text


def test_what_is_not_known_is_told() -> None:
    other_size = pair(2.5e5)
    hotspots = tuple(
        replace(h, structures=tuple(replace(s, bytes=2 * BYTES) for s in h.structures)) for h in other_size.hotspots[1:]
    )
    plan = planned(pair(1e6), profile(replace(other_size, hotspots=hotspots)))
    assert plan.missing == ("a on two: it was not studied there", "b on two: its structures are others there")
    assert {p.machine for p in plan.places} == {None}
    fewer = planned(pair(1e6), profile(of_regions((region("b", 2.5e5, 7, {1: 1.0}),), (RegionEntry(0),), (0.4,))))
    assert "b on two: it was called 7 times there, 100 times here" in fewer.missing
    unknown = replace(pair(1e6), plan=None)
    reason = planned(unknown, profile(pair(2.5e5))).reason
    assert reason == "the order of the regions is not known: they have no layouts in common"
    assert "No plan over machines: the order" in terminal.render(with_machines(unknown, [profile(pair(2.5e5))]))
    assert with_machines(unknown, []) is unknown


def test_doubtful_times_leave_it_undecided() -> None:
    """Processes there took 0.25 to 1.1 times as long: their interval goes through to the program's."""
    there = SECOND_FASTER
    first, second = there.hotspots
    original = replace(second.original, ns_processes=(2.5e5, 1.1e6))
    here = pair(1e6)
    own = tuple(replace(h, original=replace(h.original, ns_processes=(1e6, 1e6))) for h in here.hotspots)
    plan = planned(
        replace(here, hotspots=own), profile(replace(there, hotspots=(first, replace(second, original=original))))
    )
    assert plan.action == "undecided"
    assert plan.over_here is not None
    assert plan.over_here.lo < 1 < plan.over_here.hi
