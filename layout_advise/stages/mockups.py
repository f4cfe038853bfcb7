"""From candidates to compiled mock-ups: identity, candidates, their check builds, one with a deliberately wrong map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.structure import Candidate, Structure
from layout_advise.mockup.binding import bind, keys_made
from layout_advise.mockup.build import build, vector_bytes
from layout_advise.mockup.emit import emit_mockup
from layout_advise.mockup.lifted import Lifted, Loop
from layout_advise.mockup.machinecode import same_code
from layout_advise.mockup.measure import IDENTITY, IDENTITY_LANES, IDENTITY_RESTRICT, IDENTITY_SIMD, PLACED, SCALAR
from layout_advise.mockup.placement import NATURAL, InnerLoop, grown, needs_placing, shift_to
from layout_advise.tracer.trace import Trace

JOBS = 2
LONGEST_BODY = 200
SCALAR_FLAGS = ("-fno-tree-vectorize", "-fno-tree-slp-vectorize")
Variant = Literal["plain", "restrict", "simd"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """One mock-up to make; ``candidate`` None is the identity."""

    name: str
    candidate: Candidate | None
    variant: Variant
    wrong: bool = False
    checked: bool = True
    vectorised: bool = True
    """Whether the compiler may vectorise it."""
    offset: int = 0
    """Distance of the new buffers from the start of a page, a multiple of 64."""


@dataclass(frozen=True, slots=True)
class Code:
    """The lifted hotspot ``lanes``, as its compiler left it, and ``elements``, with one element an iteration where that is
    shown to be the same. Other layouts are tried on the elements; the identity, which has to be like the original, is made
    of both, and the nearer one counts."""

    lanes: Lifted
    elements: Lifted

    def of(self, recipe: Recipe) -> Lifted:
        """What a recipe is made of."""
        return self.lanes if recipe.name == IDENTITY_LANES else self.elements

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants worth making: ``simd`` where there is a loop with independent iterations to tell of."""
        return ("plain", "restrict", "simd") if _independent(self.elements.body) else ("plain", "restrict")


def _independent(items: Sequence[object]) -> bool:
    """Whether a loop is worth telling the compiler that its iterations are independent. Bodies of some hundred statements
    (lanes that could not be rerolled) gain nothing by it, and gcc 12 takes minutes over them."""
    loops = [i for i in items if isinstance(i, Loop)]
    return any((i.independent and len(i.body) <= LONGEST_BODY) or i.abreast or _independent(i.body) for i in loops)


@dataclass(frozen=True, slots=True)
class Compiled:
    """Compiler and flags."""

    executable: str
    flags: tuple[str, ...]


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


def recipes(candidates: Sequence[Candidate], code: Code) -> tuple[Recipe, ...]:
    """The identity, every candidate in every variant, and the best candidate with a wrong map."""
    variants = code.variants
    made = [Recipe(IDENTITY, None, "plain"), Recipe(SCALAR, None, "plain", checked=False, vectorised=False)]
    if code.lanes != code.elements:
        made.append(Recipe(IDENTITY_LANES, None, "plain"))
    if "restrict" in variants and candidates:
        made.append(Recipe(IDENTITY_RESTRICT, None, "restrict", checked=False))
    if "simd" in variants:
        made.append(Recipe(IDENTITY_SIMD, None, "simd", checked=False))
    made += [_recipe(c, variant) for c in candidates for variant in variants]
    if candidates:
        made.append(Recipe("wrong", candidates[0], variants[0], wrong=True))
    return tuple(made)


def _recipe(candidate: Candidate, variant: Variant) -> Recipe:
    """One check build a candidate is enough: the variants differ in what they promise the compiler, not in what they do."""
    plain = variant == "plain"
    return Recipe(candidate.id if plain else f"{candidate.id}-{variant}", candidate, variant, checked=plain)


def make_all(
    wanted: Sequence[Recipe],
    code: Code,
    trace: Trace,
    structures: Sequence[Structure],
    compiler: Compiled,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
    varying: frozenset[int] = frozenset(),
) -> tuple[Made, ...]:
    """Emit and compile, two at a time; C sources and build logs go to ``folder``. ``varying`` registers differ between the
    traced calls."""
    folder.mkdir(parents=True, exist_ok=True)
    finished = 0

    def one(recipe: Recipe) -> Made:
        nonlocal finished
        result = _make(recipe, code.of(recipe), trace, structures, compiler, folder, varying)
        finished += 1
        progress(finished, len(wanted))
        return result

    with ThreadPoolExecutor(JOBS) as pool:
        return tuple(pool.map(one, wanted))


def place_identity(identity: Made, loop: InnerLoop, kernel: str, compiler: Compiled) -> Made | None:
    """The identity with its hot loop where the original has it; None where it has no such loop or cannot be placed."""
    if identity.mockup is None or not needs_placing(loop):
        return None
    target = identity.mockup.with_name(f"{PLACED}.so")
    flags: tuple[str, ...] = NATURAL
    for _ in range(2):  # as it comes; moved
        result = build(identity.source, target, compiler.executable, (*compiler.flags, *flags))
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
    source = ""
    built: list[Path | None] = [None, None]
    for number, check in enumerate((False, True) if recipe.checked and not recipe.wrong else (False,)):
        try:
            text = emit_mockup(
                lifted,
                recipe.candidate,
                trace,
                structures,
                variant=recipe.variant,
                check=check,
                wrong=recipe.wrong,
                offset=recipe.offset,
                varying=varying,
                vector_bytes=vector_bytes(compiler.executable, compiler.flags),
            )
        except LayoutAdviseError as error:
            return Made(recipe, source, None, None, error.line())
        source = source or text
        # the check build is compiled quickly: it runs once
        target = folder / f"{recipe.name}{'.check' if check else ''}.so"
        flags = compiler.flags if recipe.vectorised else (*compiler.flags, *SCALAR_FLAGS)
        result = build(text, target, compiler.executable, ("-O1",) if check else flags)
        if result.path is None:
            return Made(recipe, source, None, None, result.reason or "it does not compile")
        built[number] = result.path
    return Made(recipe, source, built[0], built[1], None)


def expected_moves(candidate: Candidate, lifted: Lifted, trace: Trace, structures: Sequence[Structure]) -> int:
    """How many traced accesses of one call the mock-up of ``candidate`` must send to new buffers: all that the lifted code
    makes to the structures that it re-lays (gate (a) of the verification)."""
    binding = bind(lifted, trace, structures)
    moved = {r.structure.id for r in candidate.relayouts}
    made = keys_made(lifted.body)
    return sum(binding.streams[key].count for key, name in binding.structure_of.items() if name in moved and key in made)
