"""Knowledge of another machine: a report of the same program that was run there, and how data gets there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from layout_advise.errors import UsageError
from layout_advise.reports.model.contract import Report, read_report
from layout_advise.reports.model.plan import PlanMachine, Transfer


@dataclass(frozen=True, slots=True)
class MachineProfile:
    """A machine with its report."""

    machine: PlanMachine
    report: Report


def read_profiles(paths: Sequence[Path], command: Sequence[str], stated: Transfer | None) -> tuple[MachineProfile, ...]:
    """The profiles in files or run directories. What a run does not state about the way there is taken as ``stated``.
    Raises UsageError where neither says it, or the run is of another program or of other arguments; RunDirError where there
    is no report."""
    found: list[MachineProfile] = []
    for path in paths:
        report = read_report(path)
        _check_program(path, report, command)
        transfer = report.transfer or stated
        if transfer is None:
            why = "the run there does not say how long data takes to get there"
            hint = "state it: --transfer BYTES_PER_SECOND,MICROSECONDS (as 12G,5), here or for the run there"
            raise UsageError(f"no plan with {path}", why, hint)
        name = _name(path, [one.machine.name for one in found])
        threads = max((h.threads for h in report.hotspots), default=1)
        machine = PlanMachine(name, report.machine.cpu, threads, transfer, report.transfer is None)
        found.append(MachineProfile(machine, report))
    return tuple(found)


def _check_program(path: Path, report: Report, command: Sequence[str]) -> None:
    here, there = (PurePath(words[0]).name if words else "" for words in (command, report.command))
    if here != there:
        raise UsageError(f"no plan with {path}", f"it is a run of {there or 'an unknown program'}, not of {here}")
    if tuple(report.command[1:]) != tuple(command[1:]):
        why = f"there the arguments were {' '.join(report.command[1:]) or 'none'}: times are those of other work"
        raise UsageError(f"no plan with {path}", why, "give a run with the same arguments")


def _name(path: Path, taken: Sequence[str]) -> str:
    """The name of the run directory, without its ending; numbered where there are two of it."""
    folder = path if path.is_dir() else path.parent
    name = folder.absolute().name.removesuffix(".layout") or path.stem
    count = sum(one == name or one.startswith(f"{name} (") for one in taken)
    return f"{name} ({count + 1})" if count else name
