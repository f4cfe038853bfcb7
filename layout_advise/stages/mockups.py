"""From candidates to compiled mock-ups: identity, candidates, their check builds, one with a deliberately wrong map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from layout_advise.errors import LayoutAdviseError, RemapError
from layout_advise.layoutalgebra.structure import Candidate, Structure
from layout_advise.mockup.binding import bind, keys_made
from layout_advise.mockup.build import MERGED, build, vector_bytes
from layout_advise.mockup.emit import Emitted, emit, kernel_name
from layout_advise.mockup.lifted import Item, Lifted, Loop
from layout_advise.mockup.machinecode import same_code
from layout_advise.mockup.mixed import brings_together, elements_whole
from layout_advise.mockup.order import loads_late
from layout_advise.mockup.placement import NATURAL, InnerLoop, grown, likeness, needs_placing, same_loops, shift_to
from layout_advise.mockup.remap import plan
from layout_advise.mockup.timednames import IDENTITY, IDENTITY_LANES, IDENTITY_RESTRICT, IDENTITY_SIMD, PLACED, SCALAR
from layout_advise.stages.gather import tables_of
from layout_advise.tracer.trace import Trace

JOBS = 2
LONGEST_BODY = 200
SCALAR_FLAGS = ("-fno-tree-vectorize", "-fno-tree-slp-vectorize")
ONLY_THESE_GCC = ("-fno-tree-slp-vectorize",)
ONLY_THESE_CLANG = ("-fno-slp-vectorize",)
"""What the original's compiler put side by side is written so already; what it left is no vector in the original either.
So it is where it put nothing side by side, and nothing comes to lie so: clang found pairs in lifted ``kmeans`` that it had
left in the source, and the unchanged layout ran 1.13 times as fast as the original."""
MOST_CHECKED = 10
"""So many pairs of arrays gcc checks for overlaps at run time, and no more, to vectorise a loop."""
MORE_CHECKS = ("--param=vect-max-version-for-alias-checks=100",)
"""A lifted loop has more pointers than the source it stands for (one for each row of a stencil): with the usual limit gcc
gave a layout up for lost that it vectorises in hand-written code (2.5x). Where the source would have too many, it stays; not
where they are promised not to overlap: gcc forgets the promise where it loads under a mask."""
KEEP_GCC = ("-fno-tree-loop-vectorize",)
KEEP_CLANG = ("-fno-vectorize",)
"""What several iterations are made into; what one does side by side may still be put into vectors."""
Variant = Literal["plain", "restrict", "lanes", "simd"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """One mock-up to make; ``candidate`` None is the identity."""

    name: str
    candidate: Candidate | None
    variant: Variant
    wrong: bool | Literal["writes"] = False
    checked: bool = True
    vectorised: bool = True
    """Whether the compiler may vectorise it."""
    kept: bool = False
    """Whether the compiler is to leave the loops as they are: see :func:`better_kept`."""
    offset: int = 0
    """Distance of the new buffers from the start of a page, a multiple of 64."""
    blocks: Candidate | None = None
    """Of an identity: its loops are cut into blocks of elements as for this candidate."""


@dataclass(frozen=True, slots=True)
class Code:
    """The lifted hotspot ``lanes``, as its compiler left it, and ``elements``, with one element an iteration where that is
    shown to be the same. Other layouts are tried on the elements; the identity, which has to be like the original, is made
    of both, and the nearer one counts."""

    lanes: Lifted
    elements: Lifted
    gathered: Mapping[frozenset[str], tuple[Lifted, Trace]] = field(default_factory=dict)
    """By ids of structures reached through pointers: the elements, and the trace, with these thought to lie together
    (``mockup/gathered.py``)."""
    rolled: Lifted | None = None
    """The elements with loops over their fields, which ``elements`` has written out; None where there are none."""

    def of(self, recipe: Recipe, trace: Trace, structures: Sequence[Structure]) -> tuple[Lifted, Trace]:
        """What a recipe is made of, and the trace that goes with it. Loops over fields stay loops where the layout allows
        it."""
        if recipe.name == IDENTITY_LANES:
            return self.lanes, trace
        candidate = recipe.candidate or recipe.blocks
        if self.rolled is not None and candidate is not None and not tables_of(candidate):
            try:
                plan(self.rolled, candidate, bind(self.rolled, trace, structures))
            except RemapError:
                return self.elements, trace
            return self.rolled, trace
        return self.under(recipe.candidate, trace)

    def under(self, candidate: Candidate | None, trace: Trace) -> tuple[Lifted, Trace]:
        """The elements for the layout of a candidate."""
        through = tables_of(candidate)
        return self.gathered[through] if through else (self.elements, trace)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants worth making of any layout: ``simd`` where there is a loop with independent iterations to tell of."""
        return ("plain", "restrict", "simd") if any(map(_independent, self.bodies)) else ("plain", "restrict")

    def variants_of(self, candidate: Candidate) -> tuple[Variant, ...]:
        """Those of one layout: besides, with the loop over a block's elements inside, where the elements lie in blocks and
        have loops of their own."""
        turned = candidate.block is not None and any(map(_abreast, self.bodies))
        return (*self.variants, "lanes") if turned else self.variants

    @property
    def bodies(self) -> list[tuple[Item, ...]]:
        """What mock-ups in new layouts are made of."""
        return [self.elements.body, *(lifted.body for lifted, _ in self.gathered.values())]


def _independent(items: Sequence[object]) -> bool:
    """Whether a loop is worth telling the compiler that its iterations are independent. Bodies of some hundred statements
    (lanes that could not be rerolled) gain nothing by it, and gcc 12 takes minutes over them."""
    loops = [i for i in items if isinstance(i, Loop)]
    return any((i.independent and len(i.body) <= LONGEST_BODY) or i.abreast or _independent(i.body) for i in loops)


def _abreast(items: Sequence[Item]) -> bool:
    return any(i.abreast or _abreast(i.body) for i in items if isinstance(i, Loop))


@dataclass(frozen=True, slots=True)
class Compiled:
    """Compiler and flags; ``short``: for a hotspot whose loop is a short one."""

    executable: str
    flags: tuple[str, ...]
    short: bool = False


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
    """A mock-up in which each load is right before what needs it (:func:`~layout_advise.mockup.order.loads_late`)."""

    source: str
    mockup: Path


def recipes(candidates: Sequence[Candidate], code: Code, kept: bool = False) -> tuple[Recipe, ...]:
    """The identity, every candidate in every variant, and the best candidate with a wrong map. ``kept``: the identity in the
    form that the original's compiler gave it is built with its loops left alone."""
    variants = code.variants
    made = [Recipe(IDENTITY, None, "plain"), Recipe(SCALAR, None, "plain", checked=False, vectorised=False)]
    if code.lanes != code.elements or kept:
        made.append(Recipe(IDENTITY_LANES, None, "plain", kept=kept, checked=code.lanes != code.elements))
    if "restrict" in variants and candidates:
        made.append(Recipe(IDENTITY_RESTRICT, None, "restrict", checked=False))
    if "simd" in variants:
        made.append(Recipe(IDENTITY_SIMD, None, "simd", checked=False))
    made += [_recipe(c, variant) for c in candidates for variant in code.variants_of(c)]
    if candidates:
        # nothing keeps a mock-up from objects that share pages with others: there the wrong map tells most
        doubtful = next((c for c in candidates if tables_of(c)), candidates[0])
        made.append(Recipe("wrong", doubtful, variants[0], wrong=True))
    return tuple(made)


def _recipe(candidate: Candidate, variant: Variant) -> Recipe:
    """One check build a candidate is enough: the variants differ in what they promise the compiler, or in the order of what
    they do for several elements, not in where it is done."""
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
    other = loads_late(form)
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
                variant=recipe.variant,
                check=check,
                wrong=recipe.wrong,
                offset=recipe.offset,
                varying=varying,
                vector_bytes=vector_bytes(compiler.executable, compiler.flags),
                clang="clang" in Path(compiler.executable).name,
                vectors=recipe.vectorised,
                blocks=recipe.blocks,
            )
        except LayoutAdviseError as error:
            return Made(recipe, source, None, None, error.line())
        if not check:
            source, flags = made.text, (*compiler.flags, *_flags(recipe, compiler, made))
        # the check build is compiled quickly: it runs once
        target = folder / f"{recipe.name}{'.check' if check else ''}.so"
        result = build(made.text, target, compiler.executable, ("-O1",) if check else flags)
        if result.path is None:
            return Made(recipe, source, None, None, result.reason or "it does not compile")
        built[number] = result.path
    return Made(recipe, source, built[0], built[1], None, flags=flags)


def own_alignment(compiler: Compiled) -> tuple[str, ...]:
    """Flags that align loops as the compiler does it by itself. How well a processor predicts branches on data changes with
    their addresses, also relative to each other: ``scan`` took 1.36 times as long with its loops at multiples of 16 or 32,
    wherever these were, as at the odd multiple of 8 that gcc gives it."""
    return ("-falign-loops=16",) if "clang" in Path(compiler.executable).name else ("-falign-loops=0",)


def _flags(recipe: Recipe, compiler: Compiled, made: Emitted) -> tuple[str, ...]:
    if not recipe.vectorised:
        return SCALAR_FLAGS
    clang = "clang" in Path(compiler.executable).name
    flags: tuple[str, ...] = MERGED if compiler.short and not made.wide and not clang else ()
    if (recipe.candidate is None or recipe.variant != "plain" or made.overlaps <= MOST_CHECKED) and not clang:
        flags += MORE_CHECKS
    if (made.packs and elements_whole(recipe.candidate)) or (made.unpacked and not brings_together(recipe.candidate)):
        flags += ONLY_THESE_CLANG if clang else ONLY_THESE_GCC
    if recipe.kept:
        flags += KEEP_CLANG if clang else KEEP_GCC
    return flags


def expected_moves(candidate: Candidate, lifted: Lifted, trace: Trace, structures: Sequence[Structure]) -> int:
    """How many traced accesses of one call the mock-up of ``candidate`` must send to new buffers: all that the lifted code
    makes to the structures that it re-lays (gate (a) of the verification)."""
    binding = bind(lifted, trace, structures)
    moved = {r.structure.id for r in candidate.relayouts}
    made = keys_made(lifted.body)
    return sum(binding.streams[key].count for key, name in binding.structure_of.items() if name in moved and key in made)
