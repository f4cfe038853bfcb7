"""The profile of a run: the function to study."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from layout_advise.choose.policy import CHOOSE
from layout_advise.config import STDIN, Settings
from layout_advise.errors import BinaryError, ProgramError
from layout_advise.mockup.machine.loop_regions import LoopNest
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.process.launch import signal_name
from layout_advise.tracer.process.patching import ALIGNMENT, Entry, padding
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.lines import SourceLine
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.program.openmp_regions import is_region_body, region_entry
from layout_advise.tracer.program.symbols import Function
from layout_advise.tracer.sampling.call_chains import Chain, call_chains
from layout_advise.tracer.sampling.hotspots import OUTSIDE, Choice, Hotspot, choose, leader_of, rank, share_within
from layout_advise.tracer.sampling.perf import perf_available, sample_with_perf
from layout_advise.tracer.sampling.probe import SampleRun, sample
from layout_advise.tracer.trace.trace import Mapping

INTERVAL = 0.001


@dataclass(frozen=True, slots=True)
class Profiled:
    """The sampled run and the function chosen. ``module`` is the file it lives in, ``share`` the part of the samples (of
    those that other processes would have, too) that fell in it or in what it had called. ``chains``: what each sample fell
    in, and who had called that."""

    run: SampleRun
    ranking: tuple[Hotspot, ...]
    skipped: tuple[tuple[str, str], ...]
    module: ElfBinary
    function: Function
    share: float
    nest: LoopNest | None = None
    """The loop nest that stands for the function where that is entered too seldom."""
    chains: tuple[Chain, ...] = ()

    def contains(self, address: int) -> bool:
        """Tells whether an address of the module is in the region, with the function's pieces."""
        if self.nest is not None:
            return self.nest.contains(address)
        found = self.module.function_at(address)
        return found is not None and leader_of(self.module, found) == self.function

    def of_nest(self, nest: LoopNest, modules: Modules) -> Profiled:
        """The same with a loop nest in the function's place, and its share."""
        return replace(self, nest=nest, share=share_within(self.chains, modules, self.module, nest.contains))

    @property
    def threaded(self) -> bool:
        """Tells whether the hotspot is the body of a parallel region, which a team of threads runs."""
        return is_region_body(self.function)

    @property
    def entry(self) -> Entry:
        """The place to stop the program: at the start of the parallel region whose body is the hotspot, else at its
        entry."""
        if self.threaded:
            return region_entry(self.module, self.function, self.run.mappings)
        if self.nest is None:
            return self._entry(self.function.start)
        exits = tuple(map(self._entry, self.nest.exits))
        return replace(self._entry(self.nest.entry), exits=exits, chunk=self.nest.chunk)

    def _entry(self, address: int) -> Entry:
        """The code from ``address`` to the end of the function, or of the piece of it that ``address`` is in."""
        piece = self.module.function_at(address) or self.function
        end = piece.start + piece.size
        code = self.module.read(address, end - address)
        with suppress(BinaryError):  # its segment ends there
            code += padding(self.module.read(end, ALIGNMENT))
        return Entry(Path(self.module.path).resolve(), address, code, self.name)

    def region(self, load_base: int, called: Collection[int] = ()) -> Region:
        """The hotspot's code at its run-time addresses; ``called`` are functions that it calls through pointers, by their
        addresses in the file."""
        function = self.module.region(self.function, load_base, callees=True, called=called)
        return function if self.nest is None else self.nest.region(function)

    @property
    def title(self) -> str:
        """The function's name for people."""
        return self.module.title(self.function)

    @property
    def name(self) -> str:
        """The function, or the loop in it."""
        if self.nest is None:
            return self.title
        line = self.line
        return f"the loop at {line.short() if line else hex(self.nest.head)} in {self.title}"

    @property
    def place(self) -> tuple[str | None, int | None]:
        """Source file and line of the hotspot's entry."""
        line = self.line
        return (line.file, line.line) if line else (None, None)

    @property
    def line(self) -> SourceLine | None:
        """The source line of the entry, not of what is inlined there; of a loop that of the first instruction from its head
        on that has one."""
        if self.nest is None:
            inlined = self.module.inlined(self.function.start)
            return inlined[-1].call if inlined else self.module.line(self.function.start)
        lines = (self.module.line(a) for a in range(self.nest.head, self.function.start + self.function.size))
        return next((line for line in lines if line is not None and line.line), None)


def spool(settings: Settings, work: Path) -> Path | None:
    """Copy what waits on stdin into a file: the program is started several times and must read the same each time."""
    if settings.stdin is None:
        return None
    target = work / "stdin"
    # the descriptor itself: opening /dev/stdin anew starts at the file's beginning, and may not be permitted
    own = settings.stdin == STDIN
    with open(0 if own else settings.stdin, "rb", closefd=not own) as source, open(target, "wb") as copy:
        shutil.copyfileobj(source, copy)
    return target


def profile(
    settings: Settings,
    main: ElfBinary,
    stdin: Path | None,
    output: Path | None = None,
    ended: Callable[[], None] = lambda: None,
) -> Profiled:
    """Run the program to its end, sampled, and choose the hotspot. What it prints goes into ``output``, if given. ``ended``
    is called when that run is over, before any other.

    Raises ProgramError when the program crashed, hung, or shows no hotspot; UsageError/BinaryError for an unknown
    ``--hotspot``.
    """
    wanted, unknown = _wanted(settings.hotspot, main)
    run = sample(settings.command, stdin_path=stdin, timeout=settings.timeout, interval=INTERVAL, stdout=output)
    ended()
    if run.signal is not None:
        what = f"{Path(settings.command[0]).name} was ended by {signal_name(run.signal)}"
        raise ProgramError(what, "a run that crashes is not advised on", "make it run to its end first")
    if run.error and wanted is None:
        raise ProgramError("cannot sample the program", run.error)
    if wanted is None:
        _require_own_work(run)
    if len(run.samples) < CHOOSE.fewest_samples:
        run = _finer(settings, stdin, run)
        if wanted is None:
            _require_own_work(run)
        run = _by_perf(settings, stdin, run)
    seen = _seen(run, main)
    if unknown is not None:
        return _in_library(settings.hotspot or "", seen, unknown)
    if wanted is not None:
        return seen.profiled((), main, wanted)
    if len(run.samples) < CHOOSE.fewest_samples:
        raise ProgramError(
            "found no hotspot",
            f"{len(run.samples)} samples in {run.seconds:.2g} s, too few to tell where the time goes",
            "give it more work, name a function with --hotspot, or, if it starts another program, advise on that one",
        )
    return _chosen(seen, choose(seen.ranking), main)


def _require_own_work(run: SampleRun) -> None:
    """Raises ProgramError of a program that starts others for its work, as far as its CPU time tells. Of one without a
    sample, whose signals may be blocked, it is said only where there is much of that time."""
    told = len(run.samples) >= CHOOSE.fewest_samples or run.own_seconds or run.cpu_seconds >= CHOOSE.least_elsewhere
    if told and run.outside >= CHOOSE.most_outside:
        why = f"it starts another program or process, in which most of the {run.cpu_seconds:.2g} s of CPU time go by"
        raise ProgramError("found no hotspot", why, "advise on what does the work, started by itself")


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sampled run, and where its samples fell."""

    run: SampleRun
    modules: Modules
    chains: tuple[Chain, ...]
    ranking: tuple[Hotspot, ...]

    @staticmethod
    def of(profiled: Profiled, main: ElfBinary) -> Sampled:
        """The run that a region was chosen from."""
        return Sampled(profiled.run, Modules(profiled.run.mappings, main), profiled.chains, profiled.ranking)

    def profiled(self, skipped: tuple[tuple[str, str], ...], module: ElfBinary, function: Function) -> Profiled:
        """With ``function`` as the hotspot."""

        found = Profiled(self.run, self.ranking, skipped, module, function, 0.0, chains=self.chains)
        return replace(found, share=share_within(self.chains, self.modules, module, found.contains))

    def inside(self, chain: Chain, region: Profiled) -> bool:
        """Tells whether a sample fell in the region, or in what it had called."""
        return bool(share_within((chain,), self.modules, region.module, region.contains))

    def function_of(self, hot: Hotspot, main: ElfBinary, skipped: tuple[tuple[str, str], ...] = ()) -> Profiled | None:
        """With the function of the ranking ``hot`` as the hotspot; None where its bounds are not known."""
        module = main if Path(hot.module).resolve() == Path(main.path).resolve() else ElfBinary.open_module(hot.module)
        function = module.function_at(hot.address)
        return self.profiled(skipped, module, function) if function is not None else None


def _seen(run: SampleRun, main: ElfBinary) -> Sampled:
    modules = Modules(run.mappings, main)
    chains = call_chains(run.sampled, modules) if len(run.sampled) else [(a,) for a in run.samples.tolist()]
    chains = with_outside(chains, run.outside)
    return Sampled(run, modules, tuple(chains), tuple(rank(chains, modules)))


def with_outside(chains: Sequence[Chain], outside: float) -> list[Chain]:
    """The samples and those that the part ``outside`` of the CPU time would have had; some of them only, where they would be
    too many. All shares are parts of these: a layout gains nothing in other processes."""
    if outside < CHOOSE.least_outside or not chains:
        return list(chains)
    own = chains[:: max(1, round(len(chains) / (1.0 - outside) / CHOOSE.most_chains))]
    return [*own, *[(OUTSIDE,)] * round(len(own) * outside / (1.0 - outside))]


def _chosen(seen: Sampled, choice: Choice, main: ElfBinary) -> Profiled:
    hot = choice.hotspot
    found = seen.function_of(hot, main, choice.skipped)
    if found is None:
        raise ProgramError("found no hotspot", f"{hot.symbol} has no bounds in {hot.module}", "rebuild with -g")
    return found


def _finer(settings: Settings, stdin: Path | None, run: SampleRun) -> SampleRun:
    """``run`` with the samples of further runs of so short a program, which lies at the same addresses each time; CPU times
    are those of the one with most of them. The program's output was shown already."""
    runs, begun = [run], time.monotonic()
    while time.monotonic() - begun < CHOOSE.most_runs_seconds:
        enough = sum(len(one.samples) for one in runs) >= CHOOSE.fewest_samples
        if enough and (len(runs) > CHOOSE.most_runs or time.monotonic() - begun > CHOOSE.runs_seconds):
            break
        more = sample(settings.command, stdin_path=stdin, timeout=settings.timeout, interval=INTERVAL, discard=True)
        if _code(more) != _code(run) or more.error:
            break
        runs.append(more)
    most = max(runs, key=lambda one: len(one.samples))
    run = replace(run, cpu_seconds=most.cpu_seconds, own_seconds=most.own_seconds)
    samples = np.concatenate([one.samples for one in runs])
    return replace(run, samples=samples, sampled=np.concatenate([one.sampled for one in runs]))


def _by_perf(settings: Settings, stdin: Path | None, run: SampleRun) -> SampleRun:
    """``run`` with the samples of perf, where it works and there are still too few: the kernel's tick limits the timer to
    some 250 samples a second."""
    if len(run.samples) >= CHOOSE.fewest_samples or not perf_available():
        return run
    with open(stdin or os.devnull, "rb") as source:
        found = sample_with_perf(
            settings.command,
            stdin=source,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=settings.timeout,
        )
    if len(found.addresses) <= len(run.samples):
        return run
    # what the timer did not see says nothing of what perf sees
    run = replace(run, sampled=run.sampled[:0], own_seconds=run.cpu_seconds)
    return replace(run, samples=found.addresses, mappings=found.mappings)


def _code(run: SampleRun) -> list[Mapping]:
    return [m for m in run.mappings if "x" in m.permissions]


def _wanted(symbol: str | None, main: ElfBinary) -> tuple[Function | None, BinaryError | None]:
    """The function that the user named, or why it is not in the program: it may be in a library that is loaded later."""
    if symbol is None:
        return None, None
    try:
        return main.find(symbol), None
    except BinaryError as error:
        if not main.libraries:
            raise
        return None, error


def _in_library(symbol: str, seen: Sampled, unknown: BinaryError) -> Profiled:
    """The function ``symbol`` of a shared library that was sampled; raises ``unknown`` where there is none."""
    for hot in seen.ranking:
        if symbol in (hot.symbol, hot.demangled) and hot.address:
            module = ElfBinary.open_module(hot.module)
            function = module.function_at(hot.address)
            if function is not None:
                return seen.profiled((), module, function)
    raise unknown
