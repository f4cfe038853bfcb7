"""From recipes to compiled mock-ups, with their check builds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from layout_advise.build.compile_flags import Compiled, flags_of
from layout_advise.build.recipes import Code, Recipe
from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.mockup.emit import EmitSettings, emit, kernel_name
from layout_advise.mockup.evidence.binding import bind, keys_made
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.rewrite.statement_order import sink_loads
from layout_advise.mockup.run.build import build, vector_bytes
from layout_advise.mockup.run.code_placement import NATURAL, InnerLoop, grown, likeness, needs_placing, same_loops, shift_to
from layout_advise.mockup.run.same_code import same_code
from layout_advise.mockup.timing.names import IDENTITY, PLACED
from layout_advise.tracer.trace.trace import Trace

JOBS = 2


@dataclass(frozen=True, slots=True)
class Made:
    """A mock-up, or the reason why there is none. ``check`` is its check build; ``same_as`` the variant of the same layout
    that the compiler made the same machine code of."""

    recipe: Recipe
    source: str
    mockup: Path | None
    check: Path | None
    reason: str | None
    same_as: str | None = None
    flags: tuple[str, ...] = ()
    """What it was compiled with."""
    written_out: bool = False
    """Whether loops over fields that the original has are written out."""
    late: Late | None = None
    """The same with its loads in another order."""


@dataclass(frozen=True, slots=True)
class Late:
    """A mock-up in which each load is right before what needs it
    (:func:`~layout_advise.mockup.rewrite.statement_order.sink_loads`)."""

    source: str
    mockup: Path


def make_all(
    wanted: Sequence[Recipe],
    code: Code,
    trace: Trace,
    structures: Sequence[Structure],
    compiler: Compiled,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
    varying: frozenset[int] = frozenset(),
    *,
    late: bool = False,
) -> tuple[Made, ...]:
    """Emit and compile, two at a time; C sources and build logs go to ``folder``. ``varying`` registers differ between the
    traced calls. ``late``: also with loads in another order, where that is another one."""
    folder.mkdir(parents=True, exist_ok=True)
    finished = 0

    def one(recipe: Recipe) -> Made:
        nonlocal finished
        form, under = code.of(recipe, trace, structures)
        result = _make(recipe, form, under, structures, compiler, folder, varying)
        result = replace(result, written_out=code.rolled is not None and form is code.elements)
        if late and result.mockup is not None and recipe.vectorised and not recipe.wrong:
            result = replace(result, late=_late(result, form, under, structures, compiler, folder, varying))
        finished += 1
        progress(finished, len(wanted))
        return result

    with ThreadPoolExecutor(JOBS) as pool:
        return tuple(pool.map(one, wanted))


def _late(
    made: Made,
    form: Lifted,
    trace: Trace,
    structures: Sequence[Structure],
    compiler: Compiled,
    folder: Path,
    varying: frozenset[int],
) -> Late | None:
    other = sink_loads(form)
    if other == form:
        return None
    recipe = replace(made.recipe, name=f"{made.recipe.name}.late", checked=False)
    result = _make(recipe, other, trace, structures, compiler, folder, varying)
    return Late(result.source, result.mockup) if result.mockup is not None and result.flags == made.flags else None


def place_identity(identity: Made, loop: InnerLoop, kernel: str, compiler: Compiled) -> Made | None:
    """The identity with its hot loop where the original has it; None where it has no such loop or cannot be placed."""
    if identity.mockup is None or not needs_placing(loop):
        return None
    target = identity.mockup.with_name(f"{PLACED}.so")
    flags: tuple[str, ...] = NATURAL
    for _ in range(2):  # as it comes; moved
        result = build(identity.source, target, compiler.executable, (*identity.flags, *flags))
        shift = shift_to(loop, result.path, kernel) if result.path is not None else None
        if shift == 0:
            recipe = Recipe(PLACED, None, "plain", checked=False)
            return Made(recipe, identity.source, result.path, None, None)
        if shift is None:
            break
        flags = grown(shift)
    for left in target.parent.glob(f"{PLACED}.*"):
        left.unlink()
    return None


def better_kept(
    code: Code, trace: Trace, structures: Sequence[Structure], loop: InnerLoop, compiler: Compiled, folder: Path
) -> bool:
    """Whether vectorising the identity's loops anew changes them, and makes none more like the original's hot ``loop``.

    What the original's compiler made of several iterations is one iteration of the lifted loop. Where the lanes could not be
    told apart, gcc 12 at -O3 took two of these together once more: 2.4 times the original's time.
    """
    found = []
    for kept in (False, True):
        recipe = Recipe("kept" if kept else "again", None, "plain", kept=kept, checked=False)
        made = _make(recipe, code.lanes, trace, structures, compiler, folder, frozenset())
        if made.mockup is None:
            return False
        found.append(made.mockup)
    again, left = found
    kernel = kernel_name(code.lanes)
    if same_code(again, left) or same_loops(again, left, kernel):
        return False
    return likeness(loop, left, kernel) >= likeness(loop, again, kernel)


def twins(made: Sequence[Made]) -> tuple[Made, ...]:
    """``made``, each marked that has the machine code of an earlier one of the same layout: it need not be run."""
    first: dict[str, list[Made]] = {}
    result = []
    for item in made:
        recipe = item.recipe
        if item.mockup is not None and recipe.vectorised and not recipe.wrong:
            earlier = first.setdefault(recipe.candidate.id if recipe.candidate else IDENTITY, [])
            twin = next((e for e in earlier if e.mockup and same_code(e.mockup, item.mockup)), None)
            if twin is None:
                earlier.append(item)
            else:
                item = replace(item, same_as=twin.recipe.name)
        result.append(item)
    return tuple(result)


def _make(
    recipe: Recipe,
    lifted: Lifted,
    trace: Trace,
    structures: Sequence[Structure],
    compiler: Compiled,
    folder: Path,
    varying: frozenset[int],
) -> Made:
    source, flags = "", compiler.flags
    built: list[Path | None] = [None, None]
    for number, check in enumerate((False, True) if recipe.checked and not recipe.wrong else (False,)):
        try:
            made = emit(
                lifted,
                recipe.candidate,
                trace,
                structures,
                EmitSettings(
                    recipe.variant,
                    check,
                    recipe.wrong,
                    recipe.offset,
                    varying,
                    vector_bytes(compiler.executable, compiler.flags),
                    recipe.vectorised,
                    recipe.blocks,
                    "clang" in Path(compiler.executable).name,
                ),
            )
        except LayoutAdviseError as error:
            return Made(recipe, source, None, None, error.line())
        if not check:
            source, flags = made.text, (*compiler.flags, *flags_of(recipe, compiler, made))
        # the check build is compiled quickly: it runs once
        target = folder / f"{recipe.name}{'.check' if check else ''}.so"
        result = build(made.text, target, compiler.executable, ("-O1",) if check else flags)
        if result.path is None:
            return Made(recipe, source, None, None, result.reason or "it does not compile")
        built[number] = result.path
    return Made(recipe, source, built[0], built[1], None, flags=flags)


def expected_moves(candidate: Candidate, lifted: Lifted, trace: Trace, structures: Sequence[Structure]) -> int:
    """How many traced accesses of one call the mock-up of ``candidate`` must send to new buffers: all that the lifted code
    makes to the structures that it re-lays (gate (a) of the verification)."""
    binding = bind(lifted, trace, structures)
    moved = {r.structure.id for r in candidate.relayouts}
    made = keys_made(lifted.body)
    return sum(binding.streams[key].count for key, name in binding.structure_of.items() if name in moved and key in made)
