"""Rounds of random forms and of random functions: each is lifted, run on random states, and held against the processor."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.disassembly import decode_one
from layout_advise.mockup.run.build import build
from layout_advise.mockup.run.survey import source_of
from tests.support.compilers import HAS_AVX512
from tests.support.lifting import native_oracle, wide_states
from tests.support.lifting.fitted_states import fitted
from tests.support.lifting.kernel_library import KernelArguments, KernelLibrary
from tests.support.lifting.native_oracle import Native, Shape
from tests.support.lifting.random_states import Case, a_state, differences
from tests.support.lifting.runner import Job, build_runner, constants_of, load_base, marks_of, results_of, run_jobs
from tests.support.lifting.wide_states import a_wide_state
from tests.support.nightly import random_forms, random_kernels

FLAGS = ("-O0", "-O1", "-O2", "-O3", "-O2 -march=haswell", "-O3 -march=haswell")
WIDE_FLAGS = ("-O3 -march=skylake-avx512", "-O3 -march=skylake-avx512 -mprefer-vector-width=512")
STATES = 4
"""Random states that each form and each function is run on."""


@dataclass(slots=True)
class Tally:
    """What a round counted: inputs, states, by opcode or by build; ``refused`` by reason, and what differs."""

    inputs: int = 0
    states: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Take another round's counts."""
        self.inputs += other.inputs
        self.states += other.states
        self.by_kind += other.by_kind
        self.refused += other.refused
        self.differing += other.differing


def form_round(seed: str, count: int, folder: Path) -> Tally:
    """So many random forms, assembled and run natively, and interpreted by the semantics table."""
    r = random.Random(seed)
    forms = random_forms.forms(r, count)
    given = [(n, fitted(form, a_state(r, turn % 4), r)) for n, form in enumerate(forms) for turn in range(STATES)]
    return _compared(seed, forms, given, native_oracle.PLAIN, folder)


def wide_round(seed: str, count: int, folder: Path) -> Tally:
    """The same of AVX-512's forms."""
    r = random.Random(seed)
    forms = random_forms.wide(r, count)
    states = ((n, form, a_wide_state(r, turn % 4)) for n, form in enumerate(forms) for turn in range(STATES))
    given = [(n, wide_states.fitted(form, state, r)) for n, form, state in states]
    return _compared(seed, forms, given, native_oracle.WIDE, folder)


def _compared(seed: str, forms: list[str], given: list[tuple[int, Native]], shape: Shape, folder: Path) -> Tally:
    tally = Tally(inputs=len(forms))
    program, code = native_oracle.build(forms, folder, shape)
    after = native_oracle.run(program, given, folder, shape)
    insns = [decode_one(data, at) for at, data in code]
    for (n, before), result in zip(given, after, strict=True):
        tally.states += 1
        tally.by_kind[insns[n].mnemonic] += 1
        try:
            found = differences(Case(forms[n], insns[n], before, result))
        except NotLiftedError as error:
            tally.refused[f"{insns[n].mnemonic}: {error.reason}"] += 1
            continue
        if found:
            tally.differing.append(f"{seed}: {forms[n]}: {', '.join(found[:3])}")
    return tally


def function_round(seed: str, count: int, compiler: str, flags: str, folder: Path, runner: Path | None = None) -> Tally:
    """So many random functions, built once: interpreted after lifting, and emitted as C, compiled and run by ``runner``
    (built anew where none is given)."""
    r, tally = random.Random(seed), Tally(inputs=count)
    source = folder / "random.c"
    source.write_text(random_kernels.source(r, count))
    library = KernelLibrary("random", folder, compiler, *flags.split(), "-Wno-all", "-w", source=source)
    runner, jobs = runner or build_runner(folder), []
    base = load_base(runner, library.path)
    for name in (f"k{number}" for number in range(count)):
        try:
            code = lift(library.region(name), result="float")
        except NotLiftedError as error:
            tally.refused[error.reason] += 1
            continue
        tally.by_kind[f"{compiler} {flags}"] += 1
        for state in range(STATES):
            arguments = KernelArguments(r.choice((33, 40, 51, 64)), r.getrandbits(32))
            tally.states += 1
            if arguments.native(getattr(library.library, name)) != arguments.lifted(code):
                tally.differing.append(f"{seed} {compiler} {flags}: {name} (state {state})")
        ours, library.base = library.base, base  # where the runner has it
        region = library.region(name)
        library.base = ours
        made = build(source_of(lift(region, result="float")), folder / f"{name}.so", "gcc", ("-O1",))
        if made.path is None:
            tally.differing.append(f"{seed} {compiler} {flags}: {name} does not compile: {made.reason}")
            continue
        start = base + library.places[name][0]
        jobs.append(Job(name, start, results_of(code), made.path, marks_of(region), constants_of(region)))
    for name, trials in run_jobs(runner, library.path, jobs, folder, seeds=STATES).items():
        if any(trial.verdict == "differs" for trial in trials):
            tally.differing.append(f"{seed} {compiler} {flags}: {name} emitted: {trials}")
    return tally


def builds() -> list[tuple[str, str]]:
    """Compilers and flags; AVX-512 where this processor has it."""
    return [(compiler, flags) for compiler in ("gcc", "clang") for flags in (*FLAGS, *(WIDE_FLAGS if HAS_AVX512 else ()))]
