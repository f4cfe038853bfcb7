"""From recipes to compiled mock-ups, with their check builds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from layout_advise.build.compile_flags import flags_of
from layout_advise.build.policy import BUILD
from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.layoutalgebra.explore.relayout import ALIGN
from layout_advise.mockup.emit import EmitSettings, emit
from layout_advise.mockup.evidence.binding import bind, keys_made
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.rewrite.statement_order import sink_loads
from layout_advise.mockup.run.build import build, vector_bytes
from layout_advise.mockup.run.code_placement import (
    NATURAL,
    InnerLoop,
    grown,
    likeness,
    needs_placing,
    same_loops,
    shift_to,
)
from layout_advise.mockup.run.same_code import same_code
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_UNROLLED, PLACED, Variant
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.recipes import Code, Recipe
from layout_advise.propose.source import Source
from layout_advise.tracer.sampling.turns import own_time
from layout_advise.tracer.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Mockup:
    """A mock-up, or the reason why there is none. ``check`` is its check build; ``same_as`` the variant of the same layout
    that the compiler made the same machine code of."""

    recipe: Recipe
    source: str
    path: Path | None
    check: Path | None
    reason: str | None
    same_as: Variant | None = None
    flags: tuple[str, ...] = ()
    """What it was compiled with."""
    written_out: bool = False
    """Whether loops over fields that the original has are written out."""
    translated: frozenset[str] = frozenset()
    """Ids of the structures of which it makes addresses places one by one (:class:`~layout_advise.mockup.emit.Emitted`), and
    of those that only begin elsewhere."""
    late: LateLoads | None = None
    """The same with its loads in another order."""


@dataclass(frozen=True, slots=True)
class LateLoads:
    """A mock-up in which each load is right before what needs it
    (:func:`~layout_advise.mockup.rewrite.statement_order.sink_loads`)."""

    source: str
    path: Path


Mockups = Mapping[Variant, Mockup]
WIDE = re.compile(r"\((?:const )?la_(?:[fi]64x[48]|[fi]32x(?:8|16)|[fi]16x(?:16|32)|[fi]8x(?:32|64)) \*\)")
"""An access in a mock-up that takes a multiple of 32 bytes for granted."""
WRITTEN_BEHIND_POINTERS = "between the calls the program writes to objects of it that are reached through pointers"


def make_all(
    wanted: Sequence[Recipe],
    source: Source,
    compiler: Compiled,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
    until: float = math.inf,
) -> dict[Variant, Mockup]:
    """Emits and compiles, two at a time; C sources and build logs go to ``folder``. Of other layouts none but the first one
    is begun after ``until`` (``own_time``)."""
    folder.mkdir(parents=True, exist_ok=True)
    first = next((r.candidate for r in wanted if r.candidate is not None), None)

    def one(recipe: Recipe) -> Mockup:
        if recipe.candidate is not first and recipe.candidate is not None and own_time() > until:
            return Mockup(recipe, "", None, None, "not built: the time for compiling was over")
        form, trace = source.code.of(recipe, source.trace, source.structures)
        made = _make(recipe, form, trace, source, compiler, folder)
        return replace(made, written_out=source.code.rolled is not None and form is source.code.elements)

    done: dict[Variant, Mockup] = {}
    with ThreadPoolExecutor(BUILD.jobs) as pool:
        for made in pool.map(one, wanted):
            if made.reason and made.path is None:
                made = replace(made, reason=source.told(made.reason))
            done[made.recipe.variant] = made
            progress(len(done), len(wanted))
    return done


def with_late(made: Mockups, source: Source, compiler: Compiled, folder: Path) -> dict[Variant, Mockup]:
    """``made``, each also with its loads in another order, where that is another one; those that are not run have none."""

    def one(item: Mockup) -> Mockup:
        recipe = item.recipe
        if item.path is None or item.same_as is not None or not recipe.vectorised or recipe.wrong:
            return item
        return replace(item, late=_late(item, source, compiler, folder))

    with ThreadPoolExecutor(BUILD.jobs) as pool:
        return dict(zip(made, pool.map(one, made.values()), strict=True))


def _late(made: Mockup, source: Source, compiler: Compiled, folder: Path) -> LateLoads | None:
    form, trace = source.code.of(made.recipe, source.trace, source.structures)
    other = sink_loads(form)
    if other == form:
        return None
    recipe = replace(made.recipe, checked=False)
    result = _make(recipe, other, trace, source, compiler, folder, f"{recipe.variant}.late")
    return LateLoads(result.source, result.path) if result.path is not None and result.flags == made.flags else None


def place_identity(identity: Mockup, loop: InnerLoop, kernel: str, compiler: Compiled) -> Mockup | None:
    """The identity with its hot loop where the original has it; None where it has no such loop or cannot be placed."""
    if identity.path is None or not needs_placing(loop):
        return None
    target = identity.path.with_name(f"{PLACED}.so")
    flags: tuple[str, ...] = NATURAL
    for _ in range(2):  # as it comes; moved
        result = build(identity.source, target, compiler.executable, (*identity.flags, *flags))
        shift = shift_to(loop, result.path, kernel) if result.path is not None else None
        if shift == 0:
            return Mockup(Recipe(PLACED, checked=False), identity.source, result.path, None, None)
        if shift is None:
            break
        flags = grown(shift)
    for left in target.parent.glob(f"{PLACED}.*"):
        left.unlink()
    return None


def better_kept(source: Source, compiler: Compiled, folder: Path) -> bool:
    """Tells whether vectorising the identity's loops anew changes them, and makes none more like the original's hot loop.

    What the original's compiler made of several iterations is one iteration of the lifted loop. Where the lanes could not be
    told apart, gcc 12 at -O3 took two of these together once more: 2.4 times the original's time.
    """
    loop = source.long_loop
    if loop is None:
        return False
    found = []
    for kept in (False, True):
        recipe = Recipe(IDENTITY_UNROLLED, kept=kept, checked=False)
        name = "kept" if kept else "again"
        made = _make(recipe, source.code.unrolled, source.trace, source, compiler, folder, name)
        if made.path is None:
            return False
        found.append(made.path)
    again, left = found
    if same_code(again, left) or same_loops(again, left, source.kernel):
        return False
    return likeness(loop, left, source.kernel) >= likeness(loop, again, source.kernel)


def twins(made: Mockups) -> dict[Variant, Mockup]:
    """``made``, each marked that has the machine code of an earlier one of the same layout: it need not be run."""
    first: dict[str, list[Mockup]] = {}
    result = {}
    for variant, item in made.items():
        if item.path is not None and item.recipe.vectorised and not item.recipe.wrong:
            earlier = first.setdefault(variant.layout, [])
            twin = next((e for e in earlier if e.path and same_code(e.path, item.path)), None)
            if twin is None:
                earlier.append(item)
            else:
                item = replace(item, same_as=twin.recipe.variant)
        result[variant] = item
    return result


def _make(
    recipe: Recipe, lifted: Lifted, trace: Trace, source: Source, compiler: Compiled, folder: Path, name: str = ""
) -> Mockup:
    """The mock-up in a file called ``name`` (by default as the variant)."""
    text, flags, translated = "", compiler.all_flags, frozenset[str]()
    if recipe.candidate is not None and writes_behind_pointers(recipe.candidate, source):
        return Mockup(recipe, text, None, None, WRITTEN_BEHIND_POINTERS)
    built: list[Path | None] = [None, None]
    for number, check in enumerate((False, True) if recipe.checked and not recipe.wrong else (False,)):
        try:
            made = emit(
                lifted,
                recipe.relaid,
                trace,
                source.structures,
                _settings(recipe, source, compiler, check=check),
            )
        except LayoutAdviseError as error:
            return Mockup(recipe, text, None, None, error.line())
        if recipe.offset % BUILD.line and WIDE.search(made.text):  # whole vectors of records that begin with a line
            even = replace(recipe, offset=recipe.offset - recipe.offset % BUILD.line)
            return _make(even, lifted, trace, source, compiler, folder, name)
        if not check:
            text, flags = made.text, (*compiler.all_flags, *flags_of(recipe, compiler, made))
            translated = made.translated | _moved(recipe.candidate)
        # the check build is compiled quickly: it runs once
        target = folder / f"{name or recipe.variant}{'.check' if check else ''}.so"
        result = build(made.text, target, compiler.executable, ("-O1",) if check else flags)
        if result.path is None:
            return Mockup(recipe, text, None, None, result.reason or "it does not compile")
        built[number] = result.path
    return Mockup(recipe, text, built[0], built[1], None, flags=flags, translated=translated)


def _moved(candidate: Candidate | None) -> frozenset[str]:
    """Ids of the structures that only begin elsewhere: held against the same code in the place that they have."""
    starts = candidate is not None and ALIGN in candidate.families
    return frozenset(r.structure.id for r in candidate.relayouts) if starts and candidate is not None else frozenset()


def _settings(recipe: Recipe, source: Source, compiler: Compiled, *, check: bool) -> EmitSettings:
    return EmitSettings(
        recipe.variant.promise,
        check,
        recipe.wrong,
        recipe.offset,
        source.varying,
        vector_bytes(compiler.executable, compiler.all_flags),
        recipe.vectorised,
        recipe.blocks,
        compiler.family.unrelated,
        bool(source.put),
        reread=recipe.variant.form == "reread",
    )


def make_ending(recipe: Recipe, source: Source, compiler: Compiled, folder: Path) -> Path | None:
    """The mock-up of ``recipe`` as one that ends its process where an access goes to another place than its layout has for
    it; None where it cannot be built, or moves nothing."""
    if recipe.relaid is None:
        return None
    form, trace = source.code.of(recipe, source.trace, source.structures)
    settings = replace(_settings(recipe, source, compiler, check=True), ends=True)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        text = emit(form, recipe.relaid, trace, source.structures, settings).text
    except LayoutAdviseError:
        return None
    return build(text, folder / f"{recipe.variant}.ending.so", compiler.executable, ("-O2",)).path


def writes_behind_pointers(candidate: Candidate, source: Source) -> bool:
    """Tells whether the program writes between the calls of a batch to objects that ``candidate`` re-lays and that are
    reached through pointers: the map of these knows no addresses."""
    behind = replace(candidate, relayouts=tuple(r for r in candidate.relayouts if r.structure.via is not None))
    places = source.forbidden(behind)
    return any(p.start < line.end and line.start < p.end for p in places for line in source.put)


def expected_moves(candidate: Candidate, code: Code, source: Source) -> tuple[int, int]:
    """How many traced accesses of one call the mock-up of ``candidate`` must send to new buffers, at least and at most: all
    that the lifted code makes to the structures that it re-lays (gate (a) of the verification)."""
    lifted, trace = code.under(candidate, source.trace)
    binding = bind(lifted, trace, source.structures)
    made = keys_made(lifted.body)
    moved = [(k, name) for name in (r.structure.id for r in candidate.relayouts) for k in binding.keys_of(name) if k in made]
    least = sum(binding.times_in(key, name)[0] for key, name in moved if key not in lifted.thinned)
    return least, sum(binding.times_in(key, name)[1] for key, name in moved)


def identity_of_loops(made: Mockups) -> Mockup:
    """The form of the identity that is most like the original: from the loops as its compiler left them, where there is
    one."""
    return made.get(IDENTITY_UNROLLED, made[IDENTITY])
