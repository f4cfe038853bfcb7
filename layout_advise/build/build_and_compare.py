"""Build the mock-ups of one hotspot and compare what they do with the original, at several calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from layout_advise.build.code_places import hangs_on_place, moved_identities
from layout_advise.build.compile_flags import Compiled, own_alignment
from layout_advise.build.mockups import Made, better_kept, expected_moves, make_all, place_identity
from layout_advise.build.recipes import Code, Recipe
from layout_advise.case import Case
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.mockup.emit import kernel_name
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.evidence.pointer_tables import PointerTable, covering
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.rewrite.passes import rewrite
from layout_advise.mockup.run.code_placement import hot_loop
from layout_advise.mockup.timing.names import FORMS_OF_IDENTITY, IDENTITY, IDENTITY_LANES, reordered
from layout_advise.observe.chosen_elements import choices_at, chooses
from layout_advise.observe.gather import gather_again, tables_of
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_kinds import blocks_of, reject, with_structures
from layout_advise.observe.source_names import in_source
from layout_advise.tracer.process.stopped_program import Range, StoppedProgram
from layout_advise.verify.verify import NOTHING_CHANGED, Finding, Subject, verify
from layout_advise.verify.verify_team import verify_team

WRONG = "wrong"
WRONG_WRITES = "wrong-writes"
MOST_KEPT = 256 << 20
LONGEST_LOOP = 4096
"""Bytes; longer ones are not compared with those of the mock-ups."""


def make_mockups(
    case: Case,
    seen: Observation,
    lifted: Lifted,
    wanted: Sequence[Recipe],
    folder: Path,
    extra: tuple[str, ...],
    *,
    places: bool = False,
) -> dict[str, Made]:
    """Emit and compile; ``places``: they are going to be timed at several places, where times hang on these."""
    case.progress.step("compiling mock-ups")
    compiler = compiler_of(case)
    hanging = hangs_on_place(seen, lifted)
    aligned = own_alignment(compiler) if hanging else ()
    short = hot_loop(seen.region, seen.trace) is not None
    compiler = Compiled(compiler.executable, (*compiler.flags, *extra, *aligned), short)
    done = make_all(
        wanted,
        code_of(seen, lifted),
        seen.trace,
        seen.structures,
        compiler,
        folder,
        lambda i, n: case.progress.count("compiling mock-ups", i, n),
        seen.varying,
        late=places and hanging,
    )
    module, base = case.profiled.module, seen.region.load_base
    told = (replace(m, reason=in_source(m.reason, module, base)) if m.reason and m.mockup is None else m for m in done)
    return {m.recipe.name: m for m in told}


def compared(
    case: Case, program: StoppedProgram, seen: Observation, lifted: Lifted, made: dict[str, Made]
) -> dict[str, Finding]:
    subjects, code = [], Code(lifted, lifted, code_of(seen, lifted).gathered if seen.tables else {})
    for name, item in made.items():
        if item.mockup is None or item.same_as is not None:
            continue
        candidate = item.recipe.candidate
        under = code.under(candidate, seen.trace)
        moves = expected_moves(candidate, *under, seen.structures) if candidate is not None else None
        subjects.append(Subject(name, item.mockup, item.check, forbidden(candidate, seen.tables), moves))
        if item.late is not None and reordered(name) not in made:
            subjects.append(Subject(reordered(name), item.late.mockup, None, forbidden(candidate, seen.tables), moves))
    compare_all = verify if seen.team is None else verify_team
    return dict(
        compare_all(
            program,
            subjects,
            lifted,
            seen.team or seen.trace,
            case.work,
            lambda i, n: case.progress.count("comparing bytes", i, n),
        )
    )


def compare_at(
    case: Case, program: StoppedProgram, at_call: Observation, lifted: Lifted, good: Sequence[Recipe]
) -> tuple[dict[str, Made], dict[str, Finding], Mapping[str, Candidate | str]]:
    """The mock-ups of ``good`` made anew for the call that ``program`` is stopped at and compared there; and the candidates
    as they are at that call, or why there is none."""
    choices = choices_at({r.name: r.candidate for r in good if r.candidate is not None}, at_call, lifted)
    why = "; ".join(at_call.refused)
    choices |= {r.name: why for r in good if not tables_of(r.candidate) <= at_call.tables.keys()}
    quick = [
        Recipe(r.name, choice, r.variant, vectorised=r.vectorised, kept=r.kept, checked=chooses(choice) and r.checked)
        for r in good
        if not isinstance(choice := choices.get(r.name), str)
    ]
    made = make_mockups(case, at_call, lifted, quick, case.work / f"call{at_call.trace.call}", ())
    return made, compared(case, program, at_call, lifted, made), choices


def further_calls(
    case: Case,
    seen: Observation,
    lifted: Lifted,
    wanted: Sequence[Recipe],
    found: dict[str, Finding],
    left: Mapping[Range, bytes] | None,
) -> tuple[dict[str, Finding], int, bool, int | None]:
    """Compare at the next two calls too, each in a program started anew and with a trace of its own (a call may use other
    fields than the one before). What differs there is rejected. Returns the findings, the calls compared at, and whether the
    structures that get another layout lay at the same addresses each time (others may change from call to call), and in how
    many bytes ``left``, what the first batch left behind, differs from what is there where the next one begins. A call that
    leaves everything as it was ends this: it says nothing, and the program has come to rest."""
    calls, same, unlike = 1, True, None
    for call in case.calls_compared[1:]:
        good = [r for r in wanted if r.name in found and found[r.name].reason is None]
        case.progress.step(f"stopping the program at call {call}")
        with case.park(call) as program:
            if left is not None and calls == 1:
                unlike = differing(program, left)
            now = case.observe(program, call)
            if not blocks_of(r.structure for g in good if g.candidate for r in g.candidate.relayouts) <= blocks_of(
                now.structures
            ):
                return found, calls, False, unlike
            made, here, choices = compare_at(case, program, at_another_call(now, seen, lifted, program), lifted, good)
        told = {name: finding for name, finding in here.items() if finding.reason != NOTHING_CHANGED}
        reject(found, good, told, made, choices, call)
        if told.keys() != here.keys():
            return found, calls, same, unlike
        calls += 1
    return found, calls, same, unlike


def at_another_call(now: Observation, seen: Observation, lifted: Lifted, program: StoppedProgram) -> Observation:
    """Another call with the structures of ``seen``, and those of its arrays of pointers that this call finds as they are."""
    tables, why = gather_again(now, seen.tables, lifted, program.read)
    return replace(with_structures(now, seen), tables=tables, refused=(why,) if why else ())


def without_failed(made: dict[str, Made], found: Mapping[str, Finding]) -> dict[str, Made]:
    """``made``, without the other order of loads where that does not do the same."""
    good = {name for name, finding in found.items() if finding.reason is None}
    return {name: m if m.late is None or reordered(name) in good else replace(m, late=None) for name, m in made.items()}


def writes_noticed(case: Case, parked: StoppedProgram, seen: Observation, lifted: Lifted, recipe: Recipe) -> bool:
    """Whether the comparison notices writes at wrong places, where it did not notice reads: a call may read elements that
    hold the same (sums that it has just set to 0)."""
    wrong = replace(recipe, name=WRONG_WRITES, wrong="writes")
    made = make_mockups(case, seen, lifted, [wrong], case.run.mockups, ())
    finding = compared(case, parked, seen, lifted, made).get(WRONG_WRITES)
    return finding is not None and finding.reason is not None


def inherited(found: dict[str, Finding], made: dict[str, Made]) -> dict[str, Finding]:
    """A variant without a check build of its own is as good as its candidate's plain variant."""
    result = dict(found)
    for name, finding in found.items():
        candidate = made[name.partition("@")[0]].recipe.candidate
        plain = found.get(candidate.id) if candidate is not None else None
        if plain is not None and plain.reason is not None and finding.reason is None:
            result[name] = plain
    return result


def code_of(seen: Observation, lifted: Lifted) -> Code:
    """The lifted hotspot in both forms, as far as the trace of ``seen`` shows them to be the same."""
    image = open_image(seen.region.path, seen.region.load_base)
    forms = rewrite(lifted, Evidence.of(seen.trace, seen.structures, image.read), seen.tables)
    return Code(lifted.as_pointers or lifted, forms.elements, forms.gathered, forms.rolled)


def compiler_of(case: Case) -> Compiled:
    known = case.profiled.module.compiler(case.profiled.function)
    return Compiled(known.executable or "gcc", known.flags)


def is_better_kept(case: Case, seen: Observation, code: Code) -> bool:
    """Whether the identity is to be built with its loops left alone."""
    loop = hot_loop(seen.region, seen.trace, LONGEST_LOOP)
    compiler = compiler_of(case)
    return loop is not None and better_kept(code, seen.trace, seen.structures, loop, compiler, case.work / "kept")


def other_places(case: Case, seen: Observation, lifted: Lifted, made: dict[str, Made]) -> list[Made]:
    """The identity where the original lies (that which was not rerolled is more like the original), and all its forms at
    further places where times hang on that."""
    loop = hot_loop(seen.region, seen.trace)
    identity, compiler = made.get(IDENTITY_LANES, made[IDENTITY]), compiler_of(case)
    placed = place_identity(identity, loop, kernel_name(lifted), compiler) if loop is not None else None
    forms = [made[name] for name in FORMS_OF_IDENTITY if name in made] if hangs_on_place(seen, lifted) else []
    return [*([placed] if placed is not None else []), *moved_identities(forms, compiler.executable)]


def forbidden(candidate: Candidate | None, tables: Mapping[str, PointerTable] | None = None) -> tuple[Range, ...]:
    """The memory that a mock-up of ``candidate`` must not touch: the structures that it re-lays. Of objects reached through
    pointers (``tables`` by structure) the largest pieces that they make up."""
    layouts = candidate.relayouts if candidate is not None else ()
    found = []
    for structure in (r.structure for r in layouts):
        if structure.via is not None:
            pieces = covering(tables[structure.id]) if tables and structure.id in tables else ()
            found += [Range(*piece) for piece in pieces]
        else:
            found.append(Range(structure.base, (structure.block_base or structure.base) + structure.bytes))
    return tuple(found)


def left_behind(program: StoppedProgram, ranges: Sequence[Range]) -> Mapping[Range, bytes] | None:
    """What a call of the original leaves in ``ranges``; None where that is too much to be kept."""
    if sum(r.end - r.start for r in ranges) > MOST_KEPT:
        return None
    with program.fork() as fork:
        fork.run(0)
        return {r: fork.read(r.start, r.end - r.start) for r in ranges}


def differing(program: StoppedProgram, known: Mapping[Range, bytes]) -> int:
    """In how many bytes the memory of ``program`` is not what is ``known`` of it."""
    total = 0
    for place, data in known.items():
        now = np.frombuffer(program.read(place.start, len(data)), np.uint8)
        total += int(np.count_nonzero(now != np.frombuffer(data, np.uint8)))
    return total
