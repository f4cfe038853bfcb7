"""The stage: the hotspot lifted, its structures as the lifted code uses them, and candidate layouts of these."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.evidence.binding import bind_references
from layout_advise.mockup.evidence.kept_calls import (
    ended_ways,
    never_taken,
    strings_of,
    taken_after_all,
    what_is_called,
)
from layout_advise.mockup.evidence.kept_members import with_kept_members
from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.lift.inline_calls import ALL_TAKEN, Untaken
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.entry_values import Known
from layout_advise.mockup.machine.kernel_effects import unrepeatable
from layout_advise.observe.case import Case
from layout_advise.observe.chosen_elements import select
from layout_advise.observe.exchanged_buffers import with_further_calls
from layout_advise.observe.gather import gather
from layout_advise.observe.linear_index import linearise
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_kinds import blocks_of
from layout_advise.observe.stage import Observed
from layout_advise.propose.candidates_file import plain
from layout_advise.propose.proposals import Proposed, proposed
from layout_advise.propose.shared_candidates import fitted, renumbered, with_own
from layout_advise.propose.source import Source, source_of
from layout_advise.propose.untaken_fields import with_reachable
from layout_advise.rundir import write_atomically
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.program.dwarf_types import ResultKind
from layout_advise.tracer.trace.trace import Trace


def propose_layouts(
    observed: Observed,
    others: Sequence[Observation],
    read: Callable[[int, int], bytes],
    ahead: Callable[[], Sequence[Trace]] = tuple,
) -> Proposed:
    """Candidate layouts of what the call touches, with its structures as the calls of other kinds (``others``) use them too.
    ``read`` reads the program's memory at the call's entry; ``ahead`` traces the further calls that mock-ups are going to be
    compared at, where the ways that these take matter."""
    case = observed.case
    seen = with_further_calls(case, observed.seen, others)
    lifted, untaken = lifted_for_all(case, seen, [other.trace for other in others], ahead)
    source: Source | NotLiftedError
    if isinstance(lifted, Lifted):
        shared = blocks_of(r.structure for one in case.given for r in one.relayouts)
        seen = with_untaken_fields(linearise(seen, lifted, shared), lifted, untaken, calls=not case.profiled.threaded)
        seen = with_kept(gather(select(seen, lifted), lifted, read), lifted)
        verbose = case.space.progress.verbose
        source = source_of(seen, lifted, case.profiled.module, case.profiled.function, verify=verbose)
    else:
        source = lifted
    settings = case.settings
    found = proposed(seen, source, settings.candidates, temporary=settings.temporary, beside=case.beside)
    found = with_given(case, found)
    write_atomically(case.space.region.candidates, json.dumps([plain(c) for c in found.candidates], indent=1).encode())
    return found


def lifted_for_all(
    case: Case, seen: Observation, others: Sequence[Trace], ahead: Callable[[], Sequence[Trace]]
) -> tuple[Lifted | NotLiftedError, frozenset[int]]:
    """The lifted hotspot, whose ways do not end where a call that is traced ``ahead`` goes on, and where code begins that no
    call runs. Each way more may have ends of its own."""
    taken, further = case.taken, list[Trace]()
    while True:
        untaken = never_taken(seen.trace, others, taken)
        ways = Untaken(untaken, all_stop=True, called=what_is_called(seen.trace, others, taken))
        kind = "none" if case.profiled.threaded else case.profiled.module.result_kind(case.profiled.function)
        again = partial(attempt, seen.region, kind, case.outs, case.known, ways, calls=not case.profiled.threaded)
        lifted = with_strings_as_loops(again(), seen, again)
        if not isinstance(lifted, Lifted) or not ended_ways(lifted):
            return lifted, untaken
        further = further or list(ahead())
        more = frozenset[int]().union(*(taken_after_all(lifted, seen.trace, trace) for trace in further)) - taken
        if not more:
            return lifted, untaken
        taken |= more


def with_given(case: Case, found: Proposed) -> Proposed:
    """``found`` with the layouts that all regions of the run are measured in, where there are such, instead of those that
    were proposed for this one; not where buffers take each other's place: other regions do not know that."""
    given = () if found.seen.exchanged else fitted(case.given, found.seen.structures)
    if not given:
        return replace(found, candidates=renumbered(found.candidates, case.further_ids))
    given = tuple(replace(c, temporary=case.settings.temporary) for c in given)
    return replace(found, candidates=with_own(given, found.candidates, case.settings.candidates, case.further_ids))


def attempt(
    region: Region,
    result: ResultKind,
    outs: tuple[Gpr | Lane, ...] = (),
    known: Known = (),
    untaken: Untaken = ALL_TAKEN,
    strings: frozenset[int] = frozenset(),
    *,
    calls: bool = True,
) -> Lifted | NotLiftedError:
    """The lifted hotspot, or what stopped the lifter. Of the registers that a function leaves, only what it returns counts;
    of those that a loop leaves, ``outs``. ``known`` is what it finds in vector registers, ``untaken`` the ways that no
    compared call took, ``strings`` where ``rep`` operations are to be loops.

    First all of it is lifted, without calls. Where that fails, ``calls`` may stay calls, and ways that were not taken end
    where they begin.
    """
    for opaque, ways in ((False, ALL_TAKEN), (calls, untaken)):
        try:
            lifted = lift(region, result=result, outs=outs, known=known, opaque=opaque, untaken=ways, loops=strings)
        except NotLiftedError as error:
            stopped = error
            continue
        return unrepeatable(lifted) or lifted
    return stopped


def with_strings_as_loops(
    lifted: Lifted | NotLiftedError, seen: Observation, again: Callable[..., Lifted | NotLiftedError]
) -> Lifted | NotLiftedError:
    """``lifted`` with those ``rep`` operations as loops over elements (by lifting it ``again``) that reach structures, whose
    elements lie elsewhere in another layout. What is like the original has them as they are."""
    if isinstance(lifted, NotLiftedError):
        return lifted
    bound = bind_references(seen.trace, seen.structures)
    reached = {pc for pc, _ in (*bound.structure_of, *bound.shared)} & strings_of(lifted)
    loops = again(strings=frozenset(reached)) if reached else lifted
    if loops is lifted or isinstance(loops, NotLiftedError):
        return lifted
    return replace(loops, with_pointers=lambda: lifted.as_pointers or lifted)


def with_kept(seen: Observation, lifted: Lifted) -> Observation:
    """``seen`` with the members as cold ones that calls which stay calls touch, and the lifted code does not."""
    kept = with_kept_members(lifted, seen.trace, seen.structures)
    derived = zip(seen.derived, kept, strict=True)
    return replace(seen, derived=tuple(replace(one, structure=structure) for one, structure in derived))


def with_untaken_fields(seen: Observation, lifted: Lifted, untaken: frozenset[int], *, calls: bool) -> Observation:
    """``seen`` with the fields that ways use which end in ``lifted``, as far as these can be lifted. Where no field is cold
    there is none that they could add, and all of a large function need not be lifted once more."""
    if not any(d.structure.cold for d in seen.derived):
        return seen
    if not ended_ways(lifted):
        return with_reachable(seen, lifted)
    try:
        return with_reachable(seen, lift(seen.region, result="none", opaque=calls, untaken=Untaken(untaken)))
    except NotLiftedError:
        return with_reachable(seen, lifted)
