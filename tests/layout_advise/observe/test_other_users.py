"""Who else uses a structure: watched in real programs, against what their sources say."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from layout_advise import road
from layout_advise.cli import main
from layout_advise.describe import describe
from layout_advise.errors import ProgramError
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.layoutalgebra.explore.plans import Group, LayoutPlan, whole
from layout_advise.layoutalgebra.explore.relayout import relayout
from layout_advise.observe import watch_users
from layout_advise.observe.case import Case
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_users import (
    CodePlaces,
    Usage,
    User,
    Where,
    between_calls,
    fields_of,
    innermost,
    lines_elsewhere,
    new_place,
    placement,
    usage,
)
from layout_advise.observe.watch_users import gone_blocks, own_code, pages_of
from layout_advise.reports.model.structure import StructureReport
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.seized import Seized
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.lines import InlinedAt, SourceLine
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.watch.call_buffers import CallBuffer, buffers, call_name, remapped
from layout_advise.tracer.watch.guarded_memory import apart
from layout_advise.tracer.watch.user_watch import UserWatch
from layout_advise.tracer.watch.watched import Course, Pages, Watched, WatchedTouch

NAMES = ("x", "y", "z", "vx", "vy", "vz", "m", "q", "age", "P")
COUNT = 20000
FIRST = 3


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, target = Path(__file__).parent / "users_program.c", tmp_path_factory.mktemp("users") / "app"
    command = ["gcc", "-O2", "-g", "-Wall", "-Wextra", str(source), "-o", str(target), "-pthread"]
    subprocess.run(command, check=True)
    return target


def structure_at(base: int, hot: tuple[str, ...] = NAMES) -> Structure:
    fields = [Field(name, 8 * k, 8, "double") for k, name in enumerate(NAMES)]
    used, cold = tuple(f for f in fields if f.name in hot), tuple(f for f in fields if f.name not in hot)
    return Structure("s0", "p", base, 80 * COUNT, (Dim(COUNT, 80),), used, cold, block_base=base)


def watched(program: Path, *arguments: str, seconds: float = 20.0) -> tuple[Watched, tuple[User, ...], CodePlaces]:
    """The program from its third call of ``hot`` to its end."""
    binary = ElfBinary.open(program)
    function = binary.find("hot")
    entry = Entry(program.resolve(), function.start, binary.read(function.start, function.size), "hot")
    with park([str(program), *arguments], entry, FIRST) as parked:
        maps, registers = parked.mappings(), parked.registers()
        modules = Modules(maps, binary)
        structure = structure_at(registers.gpr[7])
        block = next(a for a in parked.allocations() if a.address == structure.base)
        state, table = parked.parked_state(), parked.keep_table()
        own = own_code(maps, modules, parked)
        with Seized(parked.pid) as process:
            gone = gone_blocks(process, table, [block])
            process.unpark(state, registers)
            course = Course(FIRST, registers.rip)
            watch = UserWatch(process, state.thread, course, pages_of(structure, 0, maps), own, gone)
            seen = watch.run(seconds, seconds)
    places = CodePlaces(modules)
    return seen, usage(structure, seen.touches, places, 12), places


def between(users: tuple[User, ...]) -> dict[str, User]:
    return {u.where.symbol: u for u in users if u.when == "between"}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_nothing_between_the_calls(program: Path) -> None:
    seen, users, places = watched(program)
    assert (seen.first, seen.last, seen.ended, seen.gapless, seen.reason) == (FIRST, 12, True, True, "")
    assert [(u.where.symbol, u.when, u.fields, u.writes) for u in users] == [("report", "after", ("P",), 0)]
    place = placement(seen.touches, places, seen.first, seen.last, seen.gapless)
    assert (place.periods, place.used, place.last_write, place.first_read) == (9, 0, None, None)


def test_a_second_kernel_a_reader_and_the_order_of_both(program: Path) -> None:
    seen, users, places = watched(program, "mr")
    found = between(users)
    assert set(found) == {"move", "report"}
    assert (found["move"].fields, found["report"].fields) == (("x", "vx"), ("P",))
    assert found["move"].writes > 0
    assert found["move"].reads > found["move"].writes  # x is read and written, vx read
    assert found["report"].writes == 0
    assert found["report"].where.place is not None
    assert found["report"].where.place.short() == f"users_program.c:{line_of('sum += p[i].P')}"
    place = placement(seen.touches, places, seen.first, seen.last, seen.gapless)
    assert place.last_write is not None
    assert place.first_read is not None
    assert (place.last_write.symbol, place.first_read.symbol, place.used) == ("move", "move", 9)


def line_of(text: str) -> int:
    lines = (Path(__file__).parent / "users_program.c").read_text().splitlines()
    return next(k for k, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(
    ("letter", "symbol", "through", "fields"),
    [
        ("w", "save", "write", NAMES),
        ("g", "gather", "writev", NAMES),
        ("c", "copy", "libc.so.6", NAMES),
    ],
)
def test_who_called_the_library(program: Path, letter: str, symbol: str, through: str, fields: tuple[str, ...]) -> None:
    _, users, _ = watched(program, letter)
    assert symbol in between(users)
    user = between(users)[symbol]
    assert (user.where.through, user.fields, user.writes) == (through, fields, 0)
    assert user.where.function == symbol
    assert user.where.place is not None


@pytest.mark.parametrize(("letter", "symbol", "counts"), [("k", "repeat", (1, 0)), ("z", "clear", (0, 1))])
def test_a_string_instruction_is_one_access_a_call(program: Path, letter: str, symbol: str, counts: tuple[int, int]) -> None:
    seen, users, _ = watched(program, letter)
    user = between(users)[symbol]
    calls = seen.last - seen.first  # the last one lies behind the last call
    assert user.fields == NAMES
    assert (user.reads, user.writes) == tuple(calls * count for count in counts)


@pytest.mark.parametrize("what", ["", "gplcs", "amw", "bm", "tr", "kz"])
def test_the_program_does_what_it_does_alone(program: Path, tmp_path: Path, what: str) -> None:
    alone, seen_file = tmp_path / "alone", tmp_path / "watched"
    assert subprocess.run([str(program), what, str(alone)], check=False).returncode == 3
    seen, _, _ = watched(program, what, str(seen_file))
    assert (seen.ended, seen.last, seen.reason) == (True, 12, "")
    assert digest(seen_file) == digest(alone)


@pytest.mark.parametrize("what", ["T", "mT", "i", "im"])
def test_threads_at_once_are_not_disturbed(program: Path, tmp_path: Path, what: str) -> None:
    """They come back from libraries, to breakpoints and out of system calls that began before the watch at the same time."""
    alone, seen_file = tmp_path / "alone", tmp_path / "watched"
    assert subprocess.run([str(program), what, str(alone)], check=False).returncode == 3
    seen, _, _ = watched(program, what, str(seen_file))
    assert (seen.ended, seen.reason) == (True, "")
    assert len(seen_file.read_bytes()) > 0  # it came to its last line
    assert digest(seen_file) == digest(alone) or "i" in what


def test_a_thread_beside_is_seen(program: Path) -> None:
    _, users, _ = watched(program, "tmr")
    assert "beside" in {u.where.symbol for u in users}


def test_a_callback_is_not_taken_for_the_caller(program: Path) -> None:
    _, users, _ = watched(program, "s")
    assert {u.where.symbol for u in users if u.where.through and u.when == "between"} <= {"main"}
    assert "by_x" in between(users)


@pytest.mark.parametrize(
    ("letter", "reason"),
    [("f", "freed"), ("x", "other processes"), ("R", "moved"), ("e", "moved")],
)
def test_what_cannot_be_watched_says_why(program: Path, letter: str, reason: str) -> None:
    seen, _, _ = watched(program, letter)
    assert reason in seen.reason
    assert not seen.ended


def test_time_is_limited(program: Path) -> None:
    seen, _, _ = watched(program, "mr", seconds=0.0)
    assert (seen.last, seen.ended, seen.reason) == (FIRST, False, "")


@pytest.mark.slow
def test_the_road_finds_them(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[StructureReport] = []

    def enough(case: Case, seen: Observation) -> None:
        found.extend(describe.structures(watch_users.watched(case, seen)))
        raise ProgramError("enough")

    monkeypatch.setattr(road, "watched", enough)
    command = ["trace", "-q", "--hotspot", "hot", "-o", str(tmp_path / "run"), "--", str(program), "mr"]
    assert main(command) == 1
    (particles,) = (s for s in found if s.element_bytes == 80)
    assert {u.symbol for u in particles.users if u.when == "between"} == {"move", "report"}
    assert particles.users_unknown is None
    assert particles.placement is not None
    assert particles.placement.used_periods == particles.placement.periods > 0
    assert (particles.placement.last_write or "").startswith("move (users_program.c:")


def test_calls_that_take_memory_away() -> None:
    def end() -> int:
        return 0x9000

    assert remapped(11, (0x1000, 0x2000, 0, 0, 0, 0), end) == ((0x1000, 0x3000),)  # munmap
    assert remapped(25, (0x1000, 0x2000, 0x4000, 1, 0, 0), end) == ((0x1000, 0x3000),)  # mremap
    assert remapped(25, (0x1000, 0x2000, 0x4000, 3, 0x8000, 0), end) == ((0x1000, 0x3000), (0x8000, 0xC000))
    assert remapped(9, (0, 0x2000, 3, 0x22, 0, 0), end) == ()  # mmap anywhere
    assert remapped(9, (0x1000, 0x2000, 3, 0x32, 0, 0), end) == ((0x1000, 0x3000),)
    assert remapped(12, (0x5000, 0, 0, 0, 0, 0), end) == ((0x5000, 0x9000),)  # brk
    assert remapped(12, (0, 0, 0, 0, 0, 0), end) == ()
    assert remapped(1, (1, 0x1000, 0x2000, 0, 0, 0), end) == ()


def test_pages_of_several_structures_are_held_once() -> None:
    wide, inner, after = Pages(0x1000, 0x9000, 3, 0), Pages(0x3000, 0x4000, 3, 1), Pages(0x8000, 0xA000, 3, 2)
    held = apart([after, inner, wide])
    assert held == [wide, Pages(0x9000, 0xA000, 3, 2)]


def test_buffers_of_system_calls() -> None:
    memory = b"".join(n.to_bytes(8, "little") for n in (0, 0, 0x5000, 2, 0, 0, 0))
    parts = b"".join(n.to_bytes(8, "little") for n in (0x1000, 16, 0x2000, 32))

    def read(address: int, size: int) -> bytes:
        if address == 0x9000:
            raise OSError
        return memory if address == 0x4000 else parts[:size]

    assert buffers(1, (1, 0x100, 64, 0, 0, 0), read) == (CallBuffer(0x100, 64, "read"),)
    assert buffers(0, (1, 0x100, 64, 0, 0, 0), read) == (CallBuffer(0x100, 64, "write"),)
    two = (CallBuffer(0x1000, 16, "read"), CallBuffer(0x2000, 32, "read"))
    assert buffers(20, (1, 0x5000, 2, 0, 0, 0), read) == two
    assert buffers(46, (1, 0x4000, 0, 0, 0, 0), read) == two
    assert buffers(20, (1, 0x9000, 2, 0, 0, 0), read) == ()
    assert buffers(39, (0, 0, 0, 0, 0, 0), read) == ()
    assert (call_name(20), call_name(39)) == ("writev", "system call 39")


def test_fields_of_an_access() -> None:
    structure = structure_at(0x1000, ("vx", "m", "P"))
    assert fields_of(structure, 0x1000 + 80 * 5 + 24, 8) == ("vx",)
    assert set(fields_of(structure, 0x1000 + 80 * 5 + 64, 32)) == {"age", "P", "x", "y"}
    assert set(fields_of(structure, 0x1000, 800)) == set(NAMES)
    assert fields_of(structure, 0xF00, 8) == ()
    bare = Structure("s0", "p", 0x1000, 800, (Dim(10, 80),), (Field("f24", 24, 8),))
    assert fields_of(bare, 0x1000 + 80 + 40, 8) == ("at offset 40",)


def test_inlined_functions_are_named_headers_of_the_system_are_not() -> None:
    vector, own = SourceLine("/usr/include/c++/12/bits/stl_vector.h", 1123), SourceLine("/src/app.cpp", 7)
    chain = (InlinedAt("operator[]", own), InlinedAt("step", SourceLine("/src/app.cpp", 20)))
    assert innermost("main", vector, chain) == ("step", own)
    assert innermost("main", own, chain[1:]) == ("step", own)
    assert innermost("main", own, ()) == ("main", own)
    assert innermost("main", vector, chain[:1]) == ("main", own)


def soa() -> Candidate:
    structure = structure_at(0x1000, ("vx", "m", "P"))
    layout = relayout(structure, LayoutPlan(tuple(Group((k,), whole(structure)) for k in range(3))))
    return Candidate("c1", (layout,), ("soa",), ("4",))


def test_places_in_the_new_layout_are_all_different() -> None:
    layout = soa().relayouts[0]
    places = [new_place(layout, 0x1000 + byte) for byte in range(80 * 50)]
    assert None not in places
    assert len({place[:2] for place in places if place}) == len(places)
    for byte, place in enumerate(places):
        assert place is not None
        together = [(place[0], place[1] + k) for k in range(place[2])]
        assert together == [one[:2] for one in places[byte : byte + place[2]] if one]
    assert {place[0] for place in places if place} == {-1, 0, 1, 2}
    rest = sorted(place[1] for place in places if place and place[0] == -1)
    assert rest == list(range(56 * 50))  # seven of ten fields, without holes
    assert new_place(layout, 0xFFF) is None
    assert new_place(layout, 0x1000 + 80 * COUNT) is None


def touches(pairs: Iterator[tuple[int, int]], kind: str = "read", call: int = FIRST) -> tuple[WatchedTouch, ...]:
    return tuple(WatchedTouch(0, 0x400, kind, 0x1000 + 80 * i + at, 8, call) for i, at in pairs)  # type: ignore[arg-type]


def test_lines_before_and_after() -> None:
    one = User(Where("report", None), "between", 64, 0, ("P",), touches((i, 72) for i in range(64)))
    two = User(Where("print", None), "after", 64, 0, ("x",), touches((i, 0) for i in range(64)))
    far = User(Where("odd", None), "after", 1, 0, (), (WatchedTouch(0, 1, "read", 0x10, 8, FIRST),))
    found = {"s0": Usage((one, two, far))}
    lines = {line.symbol: (line.before, line.after) for line in lines_elsewhere(soa(), found)}
    assert lines == {"report": (64, 8), "print": (64, 56)}


def test_what_is_known_of_the_time_between_calls() -> None:
    candidate, places = soa(), CodePlaces(Modules(()))
    nothing = placement((), places, FIRST, 9, True)
    assert between_calls(candidate, {"s0": Usage(placement=nothing)}) == ()
    missed = placement((), places, FIRST, 9, False)
    assert between_calls(candidate, {"s0": Usage(placement=missed)}) is None
    assert between_calls(candidate, {}) is None
    user = User(Where("move", None), "between", 1, 1, ("x",), ())
    assert between_calls(candidate, {"s0": Usage((user,), missed)}) == ("move",)
    order = (*touches(iter([(0, 0)]), "read", 3), *touches(iter([(1, 0)]), "write", 3), *touches(iter([(1, 0)]), "write", 9))
    place = placement(order, places, FIRST, 9, False)
    assert (place.periods, place.used) == (6, 1)
