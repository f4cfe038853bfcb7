"""The stage: mock-ups of the identity and of every candidate, and those of the winner once more."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from layout_advise.build.code_places import have_room, moved, moved_identities
from layout_advise.build.mockups import (
    Mockup,
    Mockups,
    better_kept,
    identity_of_loops,
    make_all,
    make_ending,
    place_identity,
    twins,
    with_late,
)
from layout_advise.build.policy import BUILD
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.layoutalgebra.explore.relayout import ALIGN
from layout_advise.mockup.remap.reread_fields import is_apart
from layout_advise.mockup.run.code_placement import same_loops
from layout_advise.mockup.run.same_code import same_code
from layout_advise.mockup.timing.variants import (
    FORMS_OF_IDENTITY,
    IDENTITY,
    IDENTITY_BLOCKS,
    IDENTITY_REINDEXED,
    SCALAR,
    Variant,
    reindexed_for,
)
from layout_advise.observe.chosen_elements import choices_at, chooses
from layout_advise.observe.gather import tables_of
from layout_advise.observe.observe import Observation
from layout_advise.propose.recipes import Recipe, recipes, reindexed
from layout_advise.propose.source import Source
from layout_advise.tracer.sampling.turns import own_time
from layout_advise.workspace import Workspace

REGISTERS = 16
LESS_ALIGNED = ("-falign-functions=32", "-falign-loops=16")
"""Code alignment of the second measurement: a gain must not depend on where the code happens to lie."""


@dataclass(frozen=True, slots=True)
class Built:
    """The mock-ups at one call. ``wanted`` are the recipes that are to be compared; ``places`` further builds of the
    candidates with their code at other places, where times depend on that."""

    source: Source
    wanted: tuple[Recipe, ...]
    mockups: Mockups
    places: Mapping[Variant, Path] = field(default_factory=dict)

    @property
    def paths(self) -> dict[Variant, Path]:
        """The shared objects, those at other places last."""
        return {v: m.path for v, m in self.mockups.items() if m.path is not None} | dict(self.places)


def build_all(space: Workspace, source: Source, candidates: Sequence[Candidate], until: float = math.inf) -> Built:
    """Builds the identity in its forms, the candidates in their variants and one with a wrong map: each in its plain variant
    first, as none but the first one is begun after ``until``."""
    plain = replace(source.compiler, short=False, last=())
    wanted = recipes(candidates, source.code, better_kept(source, plain, space.scratch / "kept"))
    wanted = tuple(sorted(wanted, key=lambda r: r.candidate is not None and r.variant.promise != "plain"))
    folder = space.region.mockups
    made = twins(make_all(wanted, source, source.compiler, folder, counted(space), until))
    made |= reached_alike(made, source, folder, until)
    wanted = tuple(m.recipe for m in made.values() if m.same_as is None)
    placed = place_identity(identity_of_loops(made), source.loop, source.kernel, plain) if source.loop is not None else None
    made |= {placed.recipe.variant: placed} if placed is not None else {}
    if source.hangs_on_place:
        identities = with_late({v: made[v] for v in FORMS_OF_IDENTITY if v in made}, source, source.compiler, folder)
        made |= identities | moved_identities(identities.values(), plain.executable)
    return Built(source, wanted, made)


def late_loads(space: Workspace, built: Built, variants: Collection[Variant]) -> dict[Variant, Mockup]:
    """Those of ``variants`` also with their loads in another order, where times depend on that; not compared yet."""
    if not built.source.hangs_on_place:
        return {}
    source, known = built.source, {v: built.mockups[v] for v in variants if v in built.mockups}
    found = with_late(known, source, source.compiler, space.region.mockups)
    return {v: m for v, m in found.items() if m.late is not None}


def reached_alike(made: Mockups, source: Source, folder: Path, until: float = math.inf) -> dict[Variant, Mockup]:
    """Where candidates make places of addresses one by one, the unchanged layout that does so too: what that costs by
    itself, and a source with indices, or with types of its own, does not need. One build for each candidate's structures,
    begun before ``until`` (``own_time``), and where these are too many sets, or one cannot be built, one for all that are
    reached so: it costs no less. Then for the structures of the others, as far as that many builds are left: memory of their
    own, and what makes places in it, cost something there, too."""
    sets = list(dict.fromkeys(m.translated for m in made.values() if m.translated))
    every = frozenset[str]().union(*sets)
    translated = [m.recipe.candidate for m in made.values() if m.translated]
    begins = all(c is not None and ALIGN in c.families for c in translated)
    found: dict[Variant, Mockup] = {}
    for one in sets[: BUILD.most_reindexed]:
        if own_time() > until:
            break
        found |= _reached(one, reindexed_for(one), source, folder, begins=begins)
    if len(found) < len(sets):
        found |= _reached(every, IDENTITY_REINDEXED, source, folder, begins=begins)
    others = dict.fromkeys(one for m in made.values() if (one := reached_as(m)) and reindexed_for(one) not in found)
    for one in [one for one in others if one not in sets][: max(0, BUILD.most_reindexed - len(found))]:
        if own_time() > until:
            break
        moved = _reached(one, reindexed_for(one), source, folder, begins=False)
        found |= {v: m for v, m in moved.items() if not m.translated}
    return found


def held_against(made: Mockup, built: Mockups) -> frozenset[str]:
    """The structures of :func:`reached_as`, where the unchanged layout does no more for them than the candidate: where it
    makes places of addresses one by one, the candidate does so, too; and it is built without a promise."""
    names = reached_as(made)
    alike = built.get(reindexed_for(names))
    same = alike is not None and not alike.translated and made.recipe.variant.promise == "plain"
    return names if made.translated or same else frozenset()


def reached_as(made: Mockup) -> frozenset[str]:
    """The structures (ids) that the unchanged layout has in memory of their own which is reached as a candidate's mock-up
    is: those of which that makes addresses places one by one, else all; none of objects that lie scattered."""
    candidate = made.recipe.candidate
    if candidate is None or made.recipe.wrong or made.path is None or made.translated:
        return made.translated
    placed = all(r.structure.placed and r.chosen is None for r in candidate.relayouts)
    return frozenset(r.structure.id for r in candidate.relayouts) if placed else frozenset()


def _reached(
    names: Collection[str], variant: Variant, source: Source, folder: Path, *, begins: bool
) -> dict[Variant, Mockup]:
    """The unchanged layout reached so. Structures that one reference reaches in turn are not all in it; of ``variant`` for
    some structures only, all have to be."""

    def made(some: Sequence[str]) -> dict[Variant, Mockup]:
        found = make_all([reindexed(source.structures, some, variant, begins=begins)], source, source.compiler, folder)
        return found if found[variant].path is not None else {}

    every = sorted(names)
    if (found := made(every)) or variant != IDENTITY_REINDEXED or len(every) == 1:
        return found
    known: list[str] = []
    best: dict[Variant, Mockup] = {}
    for name in every:
        if found := made([*known, name]):
            known, best = [*known, name], found
    return best


def with_places(built: Built, variants: Collection[Variant]) -> Built:
    """``built`` with the code of ``variants`` at other places too, where times depend on that and there is room."""
    items = [built.mockups[v] for v in variants]
    candidates = [c for m in items if (c := m.recipe.candidate) is not None]
    if not built.source.hangs_on_place or not have_room(candidates):
        return built
    return replace(built, places=moved(items, built.source.compiler.executable))


def build_at_call(
    space: Workspace, source: Source, seen: Observation, wanted: Sequence[Recipe]
) -> tuple[Built, Mapping[Variant, Candidate | str]]:
    """The mock-ups of ``wanted`` made anew for another call (``source`` and ``seen`` are that call's), quickly; and the
    candidates as they are at that call, or why there is none."""
    choices = choices_at({r.variant: r.candidate for r in wanted if r.candidate is not None}, seen, source.lifted)
    why = "; ".join(seen.refused)
    choices |= {r.variant: why for r in wanted if not tables_of(r.candidate) <= source.tables.keys()}
    quick = tuple(
        Recipe(r.variant, choice, kept=r.kept, checked=chooses(choice) and r.checked, through=r.through)
        for r in wanted
        if not isinstance(choice := choices.get(r.variant), str)
    )
    folder = space.scratch / f"call{source.trace.call}"
    return Built(source, quick, make_all(quick, source, source.compiler, folder, counted(space))), choices


def build_general(space: Workspace, built: Built, variant: Variant) -> Path | None:
    """The mock-up ``variant`` made so that it takes all general registers as they come, whatever they were at the traced
    call; None where it cannot be built."""
    source = replace(built.source, varying=frozenset(range(REGISTERS)))
    recipe = replace(built.mockups[variant].recipe, checked=False)
    folder = space.scratch / f"general{source.trace.call}" / space.region.path.name
    return make_all([recipe], source, source.compiler, folder, counted(space))[variant].path


def build_ending(space: Workspace, built: Built, variant: Variant, general: bool) -> Path | None:
    """The mock-up ``variant`` as one that ends its process at the first access to a place that is not that of its layout;
    ``general`` as :func:`build_general` makes it. None where there is none."""
    source = replace(built.source, varying=frozenset(range(REGISTERS))) if general else built.source
    folder = space.scratch / f"ending{source.trace.call}{'-general' if general else ''}" / space.region.path.name
    return make_ending(built.mockups[variant].recipe, source, source.compiler, folder)


def rebuild(space: Workspace, built: Built, variant: Variant, others: Sequence[Variant], *, places: bool) -> Built:
    """The candidate ``variant`` and those of ``others`` with other code alignment and buffer offsets, the candidate without
    vector instructions, and as one that reads again what a source might; with ``places``, and where times may depend on
    these, also at other ones. What cannot be built is left out; so are the scalar builds where no build has vector
    instructions."""
    source, recipe = built.source, built.mockups[variant].recipe
    wanted = [built.mockups[name].recipe for name in (variant, *others)]
    wanted.append(Recipe(variant.scalar, recipe.candidate))
    if variant.promise == "plain" and recipe.candidate is not None and any(map(is_apart, recipe.candidate.relayouts)):
        wanted.append(Recipe(variant.reread, recipe.candidate))
    if recipe.candidate is not None and recipe.candidate.block is not None and not tables_of(recipe.candidate):
        wanted.append(Recipe(IDENTITY_BLOCKS, blocks=recipe.candidate))
    fresh = [replace(r, checked=False, offset=BUILD.offset_again + head_of(r)) for r in wanted]
    late = {v for v, m in built.mockups.items() if m.late is not None}
    folder = space.scratch / f"again{source.trace.call}"
    compiler = source.compiler.with_flags(LESS_ALIGNED)
    again = make_all(fresh, source, compiler, folder, counted(space))
    if places and source.hangs_on_place:
        again |= with_late({v: m for v, m in again.items() if v in late}, source, compiler, folder)
    found = worth_timing({v: m.path for v, m in again.items() if m.path is not None}, variant, source.kernel)
    elsewhere = {}
    if places and source.hangs_on_place and IDENTITY in again:
        timed = (again[v] for v in (variant, *FORMS_OF_IDENTITY) if v in again and v in found)
        elsewhere = moved(timed, compiler.executable)
    return Built(source, (), {v: again[v] for v in found}, elsewhere)


def head_of(recipe: Recipe) -> int:
    """How far into a line new arrays begin as a source allocates them: behind the allocator's own bytes, where those that
    the program has do so. What gains only with arrays that begin with a line gains by that, and not by its layout; where
    that is the layout, they begin with one."""
    if recipe.candidate is not None and ALIGN in recipe.candidate.families:
        return 0
    heap = [r.structure for r in recipe.candidate.relayouts if r.structure.kind == "heap"] if recipe.candidate else []
    aligned = all((s.block_base or s.base) % BUILD.line == 0 for s in heap if s.placed)
    return 0 if aligned or recipe.variant.promise == "lanes" else BUILD.malloc_head


def worth_timing(built: dict[Variant, Path], best: Variant, kernel: str) -> dict[Variant, Path]:
    """``built`` without the scalar builds where these are the same programs as the others (there is no SIMD to tell from
    the layout), without an identity in blocks that is the same as the other, and without a candidate that reads again where
    that makes no difference."""
    pairs = ((IDENTITY, SCALAR), (best, best.scalar))
    if best.reread in built and same_program(built[best], built[best.reread], kernel):
        built = {v: path for v, path in built.items() if v != best.reread}
    if IDENTITY_BLOCKS in built and IDENTITY in built and same_code(built[IDENTITY], built[IDENTITY_BLOCKS]):
        built = {v: path for v, path in built.items() if v != IDENTITY_BLOCKS}
    if all({one, other} <= set(built) and same_program(built[one], built[other], kernel) for one, other in pairs):
        return {v: path for v, path in built.items() if v not in (SCALAR, best.scalar)}
    return built


def same_program(one: Path, other: Path, kernel: str) -> bool:
    """Tells whether two builds have the same machine code, or at least the same loops."""
    return same_code(one, other) or same_loops(one, other, kernel)


def counted(space: Workspace) -> Callable[[int, int], None]:
    """Shows how many mock-ups are compiled."""
    space.progress.step("compiling mock-ups")
    return lambda done, total: space.progress.count("compiling mock-ups", done, total)
