"""The run directory ``app.layout/`` and the scratch folder beside it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from layout_advise import __version__
from layout_advise.errors import RunDirError
from layout_advise.tracer.offspring.processes import start_time
from layout_advise.tracer.process.channel import is_left_behind
from layout_advise.tracer.process.disk_space import RECORDS_ROOM, memory_folder, runs_code
from layout_advise.tracer.snapshot.dump_folder import remove_stale_dumps
from layout_advise.tracer.trace.set_aside import BEFORE, forget, give_back, is_whole, set_aside

FORMAT = "layout-advise.run/2"
MARKER = "run.json"
LOCK = ".lock"
STAGES = "stages.json"
REGIONS = "regions"
TRACE = "trace.lat"
LONGEST_NAME = 80
LONGEST = 1e9  # seconds; stages that say more are damaged
_FILES = (TRACE, "candidates.json", "timings.json", "report.json", "report.html", "program.log", STAGES)
_FOLDERS = ("mockups", REGIONS)


class Marker(msgspec.Struct, frozen=True):
    """The content of ``run.json``: who made the folder and how far it got."""

    format: str
    version: str
    complete: bool


@dataclass(frozen=True, slots=True)
class RegionDir:
    """The files of one region: ``regions/NAME`` in a run directory."""

    path: Path

    @property
    def trace(self) -> Path:
        """The folded trace."""
        return self.path / TRACE

    @property
    def candidates(self) -> Path:
        """The candidates, before they are measured."""
        return self.path / "candidates.json"

    @property
    def mockups(self) -> Path:
        """C sources and build logs."""
        return self.path / "mockups"

    @property
    def timings(self) -> Path:
        """Raw block medians."""
        return self.path / "timings.json"

    @property
    def name(self) -> str:
        """The folder as the report has it, from the run directory: ``regions/step``."""
        return f"{REGIONS}/{self.path.name}"

    def beside(self, region: str) -> RegionDir:
        """The folder of another region of the same run."""
        return _region(self.path.parent, region)

    def remove(self) -> None:
        """Remove what is there: another region is studied instead."""
        shutil.rmtree(self.path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class RunDir:
    """A run directory that this process has locked."""

    path: Path

    def region(self, name: str) -> RegionDir:
        """The folder for the region that is called ``name``; created where it is new."""
        return _region(self.path / REGIONS, name)

    @property
    def output(self) -> Path:
        """The program's output, where stdout was wanted for something else."""
        return self.path / "program.log"

    @property
    def report(self) -> Path:
        """The contract."""
        return self.path / "report.json"

    @property
    def stages(self) -> Path:
        """When the stages of the run began, and how long they took."""
        return self.path / STAGES

    @property
    def html(self) -> Path:
        """The report for reading."""
        return self.path / "report.html"

    def mark(self, complete: bool) -> None:
        """Write ``run.json``."""
        write_atomically(self.path / MARKER, msgspec.json.encode(Marker(FORMAT, __version__, complete)))


def default_path(program: str) -> Path:
    """``app.layout`` in the current folder for ``./app``."""
    return Path(f"{Path(program).name}.layout")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old or the new one, never half. Raises RunDirError (disk full, ...)."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_bytes(data)
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise RunDirError(
            f"cannot write {path}", error.strerror or str(error), "free some space or choose another -o"
        ) from error


def _region(regions: Path, name: str) -> RegionDir:
    short = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[:LONGEST_NAME] or "region"
    folder = RegionDir(regions / short)
    try:
        folder.mockups.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirError(
            f"cannot write {folder.path}", error.strerror or str(error), "choose another folder with -o"
        ) from error
    return folder


def find_trace(path: Path) -> Path:
    """The trace in a run directory or in the folder of one of its regions; a file is taken as it is. Raises RunDirError
    where there is none, or where several regions have one."""
    if not path.is_dir():
        return path
    found = [path / TRACE] if (path / TRACE).is_file() else sorted((path / REGIONS).glob(f"*/{TRACE}"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise RunDirError(f"no trace in {path}", f"{TRACE} is missing", "give a folder that `trace` wrote")
    names = ", ".join(str(one.parent) for one in found)
    raise RunDirError(f"{path} holds traces of several regions", "", f"name one of {names}")


def run_of(trace: Path) -> Path:
    """The run directory that a trace's file lies in; its own folder where that is none of a region."""
    regions = trace.absolute().parent.parent
    return regions.parent if regions.name == REGIONS else trace.parent


def read_stages(folder: Path) -> list[tuple[str, float, float]]:
    """Name, start and length (seconds) of the stages of the run in ``folder``; none where it does not say."""
    try:
        found = msgspec.json.decode((folder / STAGES).read_bytes(), type=list[tuple[str, float, float]])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    return found if all(abs(value) < LONGEST for _, *times in found for value in times) else []


def _inspect(path: Path, force: bool) -> None:
    """Refuse what must not be overwritten."""
    if not path.exists():
        return
    if not path.is_dir():
        raise RunDirError(f"{path} is a file", "the results go into a folder", "choose another name with -o")
    marker = path / MARKER
    if not marker.exists():
        if not is_whole(path, MARKER) and any(entry.name != LOCK for entry in path.iterdir()):
            raise RunDirError(f"{path} is not a run directory of layout-advise", "it holds other files", "choose another -o")
        return
    try:
        known = msgspec.json.decode(marker.read_bytes(), type=Marker)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if force:
            return
        raise RunDirError(f"{path} is damaged", str(error), "use -f to start over, or another -o") from error
    if force:
        return
    if known.format != FORMAT:
        raise RunDirError(
            f"{path} is from another version ({known.version}, format {known.format})",
            f"this one is {__version__} with format {FORMAT}",
            "use -f to start over, or another -o",
        )
    if known.complete:
        raise RunDirError(f"{path} holds a complete run", "", "use -f to replace it, -o to write elsewhere")


def _is_complete(path: Path) -> bool:
    with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode((path / MARKER).read_bytes(), type=Marker).complete
    return False


def _clear(path: Path) -> None:
    for name in _FILES:
        with contextlib.suppress(FileNotFoundError):
            (path / name).unlink()
    for name in _FOLDERS:
        shutil.rmtree(path / name, ignore_errors=True)
    for half in path.glob(".*.*.[0-9]*"):  # of write_atomically, in a run that was killed
        half.unlink(missing_ok=True)


def _lock(path: Path) -> int:
    """Open and lock ``path``; the descriptor. A file that its holder removed meanwhile is not the lock any more."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise RunDirError(f"{path.parent} is in use by another run", "", "wait for it or choose another -o") from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        os.close(lock)


@contextlib.contextmanager
def open_run(path: Path, force: bool) -> Iterator[RunDir]:
    """Create (or take over) and lock the run directory. Raises RunDirError when it is complete (without ``force``),
    foreign, from another version, in use by another run, or cannot be written. A complete run that is replaced stays until
    the new one has ended: where that is cut short, the old one is there again, at the latest when the next run opens it."""
    if not (path / BEFORE).is_dir():
        _inspect(path, force)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = _lock(path / LOCK)
    except OSError as error:
        raise RunDirError(f"cannot write {path}", error.strerror or str(error), "choose another folder with -o") from error
    try:
        give_back(path, MARKER, _clear)  # of a run that was killed
        _inspect(path, force)  # another run may have completed it meanwhile
        if _is_complete(path):
            set_aside(path, _FILES + _FOLDERS, MARKER)
        _clear(path)
        run = RunDir(path)
        run.mark(complete=False)
        try:
            yield run
        except BaseException:
            give_back(path, MARKER, _clear)
            raise
        forget(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            (path / LOCK).unlink()
        os.close(lock)


def scratch_parent() -> Path:
    """tmpfs where there is one with room: records, command files and dumps should not touch a disk. Mock-ups are loaded from
    there, so it is one that runs code. Raises RunDirError where neither it nor the system's temporary folder does."""
    shm, other = memory_folder(RECORDS_ROOM), Path(tempfile.gettempdir())
    if shm is not None and runs_code(shm):
        return shm
    if not runs_code(other):
        why = f"/dev/shm cannot be used, and {other} is mounted noexec"
        raise RunDirError("no folder to load mock-ups from", why, "set TMPDIR to a folder that runs code")
    return other


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone afterwards, whatever happens. Folders that killed runs left behind are removed first."""
    parent = scratch_parent()
    for place in {parent, Path("/dev/shm"), Path(tempfile.gettempdir())}:  # the killed one may have had another choice
        _sweep(place)
        remove_stale_dumps(place)  # a run that makes no snapshot clears those of killed ones, too
    folder = Path(tempfile.mkdtemp(prefix=f"layout-advise-{os.getpid()}-{start_time(os.getpid())}-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: Path) -> None:
    for folder in parent.glob("layout-advise-*-*-*"):
        if is_left_behind(folder):
            shutil.rmtree(folder, ignore_errors=True)
