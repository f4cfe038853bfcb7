"""Runs as objects: opened from a run directory, or made of a program."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as html_text
from pathlib import Path
from typing import Any

from rich.progress import Progress as Bar

from layout_advise.config import STAGES
from layout_advise.errors import LayoutAdviseError, MachineError
from layout_advise.notebook.timing import TimedHere, time_here
from layout_advise.notebook.views import FramedPage, ItemTable, LayoutView, first_of
from layout_advise.reports.exports import rows
from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.contract import Report, read_report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.plan import StructurePlan
from layout_advise.reports.model.structure import StructureReport
from layout_advise.reports.pages import html, terminal
from layout_advise.reports.words import plan_words
from layout_advise.reports.words.headline import headline
from layout_advise.reports.words.structure_words import structure_line
from layout_advise.rundir import default_path


@dataclass(frozen=True, slots=True, repr=False)
class AdviceRun:
    """A run that was made: ``path`` is its directory, ``report`` all its data."""

    path: Path
    report: Report

    @property
    def regions(self) -> ItemTable[HotspotReport]:
        """The regions of the report."""
        return ItemTable("region", self.report.hotspots, lambda one: one.name or one.symbol, _region_row)

    @property
    def structures(self) -> ItemTable[StructureReport]:
        """The data structures of all regions."""
        found = tuple(structure for hotspot in self.report.hotspots for structure in hotspot.structures)
        return ItemTable("structure", found, lambda one: one.name, _structure_row)

    @property
    def candidates(self) -> ItemTable[CandidateReport]:
        """The layouts that were tried, the advised one first; the columns are those of ``report --format csv``."""
        known = [each for hotspot in self.report.hotspots for each in rows.of_candidates(hotspot)]
        every = {id(one): row for one, row in known}
        return ItemTable("layout", tuple(one for one, _ in known), lambda one: one.id, lambda one: every[id(one)])

    @property
    def plan(self) -> ItemTable[StructurePlan]:
        """The plan of the whole program, a row for structures that are laid out together; empty where one region was
        studied."""
        found = self.report.plan.structures if self.report.plan is not None else ()
        return ItemTable("plan", found, lambda one: ", ".join(one.structures), _plan_row)

    def layout(self, name: str) -> LayoutView:
        """A layout by its id, to look at."""
        return LayoutView(self.candidates[name])

    def time(self, name: str, rounds: int = 20) -> TimedHere:
        """Times of a layout's mock-up and of the unchanged one, measured now on NumPy data in a process of its own. It runs
        code of the run directory: only for runs of your own. Raises RunDirError where it cannot be called so."""
        return time_here(self.path, self.candidates[name], rounds)

    def explore(self) -> Any:
        """A slider over the layouts that redraws the one chosen, with a button that times it on NumPy data. Raises
        MachineError without ipywidgets."""
        try:
            import ipywidgets
        except ImportError as error:
            hint = "pip install 'layout-advise[notebook]'"
            raise MachineError("cannot show a slider", "ipywidgets is not installed", hint) from error
        names = [one.id for one in self.candidates]
        first_of(names, "layouts")
        slider, shown = ipywidgets.SelectionSlider(options=names, description="layout"), ipywidgets.HTML()

        def draw(_: object = None) -> None:
            said.value = ""
            shown.value = self.layout(slider.value)._repr_html_()

        button, said = ipywidgets.Button(description="time it here"), ipywidgets.HTML()

        def measure(_: object) -> None:
            try:
                said.value = html_text(str(self.time(slider.value)))
            except LayoutAdviseError as error:
                said.value = html_text(error.line())

        slider.observe(draw, names="value")
        button.on_click(measure)
        draw()
        return ipywidgets.VBox([slider, shown, ipywidgets.HBox([button, said])])

    def show(self, height: int = 640) -> FramedPage:
        """The whole report as it is in ``report.html``."""
        return FramedPage(html.render(self.report, str(self.path)), height)

    def __repr__(self) -> str:
        said = "; ".join(headline(hotspot) for hotspot in self.report.hotspots) or "no region"
        return f"<{self.path}: {said}>"

    def __str__(self) -> str:
        return terminal.render(self.report, width=100, run=str(self.path))

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()


def _region_row(one: HotspotReport) -> dict[str, Any]:
    verdict = one.verdict
    return {
        "region": one.name or one.symbol,
        "line": one.line,
        "share": one.share,
        "action": verdict.action,
        "gain": verdict.gain,
        "answer": headline(one),
    }


def _plan_row(one: StructurePlan) -> dict[str, Any]:
    return {
        "structures": ", ".join(one.structures),
        "action": one.action,
        "layout": one.label,
        "program": one.program.median,
        "program_lo": one.program.lo,
        "program_hi": one.program.hi,
        "measured": one.measured,
        "run_so": one.trial.speedup.median if one.trial is not None and one.trial.speedup is not None else None,
        "answer": plan_words.headline(one),
    }


def _structure_row(one: StructureReport) -> dict[str, Any]:
    return {
        "structure": one.name,
        "data": structure_line(one),
        "used": ", ".join(field.name for field in one.fields),
        "layout": one.layout,
    }


def open_run(path: str | Path) -> AdviceRun:
    """The run in a directory that ``trace`` wrote. Raises RunDirError where there is none."""
    return AdviceRun(Path(path), read_report(Path(path)))


def trace_program(command: Sequence[str | Path], output: str | Path | None = None, **options: Any) -> AdviceRun:
    """Runs ``layout-advise trace`` on a program with its arguments, showing its progress, and returns the run. ``options``
    are those of the command: ``hotspot="step"``, ``restores=5``, ``allow_reassociation=True``.

    Raises LayoutAdviseError with the command's own line where it could not."""
    words = [str(word) for word in command]
    folder = Path(output) if output is not None else default_path(words[0])
    flags = [part for name, value in options.items() for part in _flag(name, value)]
    line = [sys.executable, "-m", "layout_advise", "trace", "-f", "-v", "-o", str(folder), *flags, "--", *words]
    said = ""
    with (
        subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace") as running,
        Bar(transient=True) as bar,
    ):
        task = bar.add_task("layout-advise", total=len(STAGES))
        assert running.stderr is not None
        for text in running.stderr:
            said = text.strip() or said
            stage = text.partition(":")[0]
            if stage in STAGES:
                bar.update(task, completed=STAGES.index(stage), description=text.strip()[:60])
    if running.returncode not in (0, 3):
        raise LayoutAdviseError(f"no advice on {words[0]}", said.removeprefix("layout-advise: "))
    return open_run(folder)


def _flag(name: str, value: Any) -> list[str]:
    word = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [word] if value else []
    return [] if value is None else [word, str(value)]
