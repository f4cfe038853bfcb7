"""One test for each kind of fault that damaged files have shown: each was a traceback once."""

from __future__ import annotations

import io
import re
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from elftools.elf.elffile import ELFFile

from layout_advise.apply.sources import from_compile_commands, from_debug_information
from layout_advise.cli import main
from layout_advise.emit.languages import WRITERS
from layout_advise.errors import BinaryError, LayoutAdviseError, UsageError
from layout_advise.farm.listing import read_list
from layout_advise.farm.rows import read_rows
from layout_advise.mockup.machine.image import open_image
from layout_advise.notebook.session import open_run as open_in_notebook
from layout_advise.opencl.host.spec import read_spec
from layout_advise.reports.pages.chrome_trace import events
from layout_advise.rundir import open_run
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.elf_checks import damage_named, without_damaged
from layout_advise.tracer.program.entries.line_headers import has_room
from layout_advise.tracer.trace.consistency import check
from layout_advise.tracer.trace.trace_file import read_trace
from tests.support.fuzzing.elf_fields import ElfFields
from tests.support.fuzzing.raw_bytes import ODD_NUMBERS
from tests.support.fuzzing.samples import SPEC, Samples, samples

NO_WORD = b'[{"directory": "/", "file": "a.c", "command": null}]'
NOT_TEXT = b'{"a": "\xff\xfe"}'
TOO_DEEP = b"[" * 100_000
CONTENTS = pytest.mark.parametrize("content", [NOT_TEXT, TOO_DEEP], ids=["no UTF-8", "too deep"])


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture
def run(known: Samples, tmp_path: Path) -> Path:
    """A copy of the recorded run, to be damaged."""
    return Path(shutil.copytree(known.run, tmp_path / "run"))


def refused_in_one_line(capsys: pytest.CaptureFixture[str], *words: str) -> None:
    assert main(list(words)) in (1, 2)
    said = capsys.readouterr().err.splitlines()
    assert len([line for line in said if line.startswith("layout-advise: ")]) == 1, said
    assert not any("Traceback" in line for line in said)


@CONTENTS
@pytest.mark.parametrize("command", ["report", "compare", "guard", "emit"])
def test_a_report_that_is_no_json(command: str, content: bytes, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "report.json").write_bytes(content)
    more = {"compare": [str(run)], "emit": ["--as", "c"]}.get(command, [])
    refused_in_one_line(capsys, command, str(run), *more)


@CONTENTS
def test_candidates_that_are_no_json(content: bytes, run: Path, known: Samples, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "regions" / known.region.name / "candidates.json").write_bytes(content)
    refused_in_one_line(capsys, "emit", str(run), "--as", "c")


@pytest.mark.parametrize("language", WRITERS)
@pytest.mark.parametrize(
    "what", ["no dimensions", "a buffer of nothing", "blocks of none", "a divisor of none", "none along"]
)
def test_candidates_whose_numbers_fit_no_layout(
    what: str, language: str, run: Path, known: Samples, capsys: pytest.CaptureFixture[str]
) -> None:
    file = run / "regions" / known.region.name / "candidates.json"
    listed = msgspec.json.decode(file.read_bytes())
    for one in (layout for candidate in listed for layout in candidate["relayouts"]):
        axes = [axis for mapped in one["fields"] for axis in mapped["axes"]]
        if what == "no dimensions":
            one["structure"]["dims"] = []
            one["fields"] = [{**mapped, "axes": []} for mapped in one["fields"]]
        elif what == "a buffer of nothing":
            one["buffers"].append({"name": "more", "bytes": 64})
        elif what == "a field of 2 GiB":
            one["structure"]["fields"][0]["bytes"] = 1 << 31
        elif what == "none along":
            one["structure"]["dims"][0]["count"] = 0
        else:
            axes[0]["block" if what == "blocks of none" else "div"] = 0
    file.write_bytes(msgspec.json.encode(listed))
    refused_in_one_line(capsys, "emit", str(run), "--as", language)


@pytest.mark.parametrize(
    ("written", "instead", "name"),
    [
        (rb"(?<=\x02\x01\x1f)\x02(?=[\x0b\x0f])", b"\x03", "app.c"),
        (rb"(?<=\x02\x01)\x1f(?=\x02[\x0b\x0f])", b"\x06", None),
    ],
    ids=["times for folders", "numbers for names"],
)
def test_tables_of_files_that_hold_something_else(
    written: bytes, instead: bytes, name: str | None, known: Samples, tmp_path: Path
) -> None:
    """In DWARF 5 a table says what it holds, and how it is written."""
    data, count = re.subn(written, instead, known.elf[0].data)
    assert count > 0
    path = tmp_path / "program"
    path.write_bytes(data)
    path.chmod(0o755)
    binary = ElfBinary.open(path)
    line = binary.line(next(one for one in binary.functions if one.name == "step").start)
    assert line is not None
    assert line.line == 5
    assert name is None or line.short() == f"{name}:5"


def test_a_line_program_with_more_folders_than_there_is_room_for_is_not_read(known: Samples, tmp_path: Path) -> None:
    """Two million folders of no bytes each; with 2**60 it had no end."""
    data, count = re.subn(
        rb"\x01\x01\x1f.(?=.{2,40}\x02\x01\x1f\x02)", b"\x00\xff\xff\x7f", known.elf[0].data, flags=re.DOTALL
    )
    assert count > 0
    path = tmp_path / "program"
    path.write_bytes(data)
    path.chmod(0o755)
    binary = ElfBinary.open(path)
    assert binary.line(next(one for one in binary.functions if one.name == "step").start) is None
    for content, room in ((known.elf[0].data, True), (data, False)):
        info = ELFFile(io.BytesIO(content)).get_dwarf_info()
        assert {has_room(info, unit) for unit in info.iter_CUs()} == {room}


def test_a_layout_without_an_id_has_a_row_in_a_notebook(known: Samples, run: Path) -> None:
    report = msgspec.json.decode((run / "report.json").read_bytes())
    report["hotspots"][0]["candidates"][0]["id"] = ""
    (run / "report.json").write_bytes(msgspec.json.encode(report))
    opened = open_in_notebook(run)
    assert "<table>" in opened.candidates._repr_html_()
    assert len(opened.candidates) == len(report["hotspots"][0]["candidates"])


@CONTENTS
def test_a_run_whose_marker_is_no_json_is_told(content: bytes, run: Path) -> None:
    (run / "run.json").write_bytes(content)
    with pytest.raises(LayoutAdviseError, match="damaged"), open_run(run, force=False):
        pass
    with open_run(run, force=True):
        pass


def test_a_marker_with_no_text_in_a_word_that_nobody_reads(run: Path) -> None:
    whole = (run / "run.json").read_bytes()
    (run / "run.json").write_bytes(whole.replace(b"{", b'{"command\xff": 1, ', 1))
    with open_run(run, force=True):
        pass


@pytest.mark.parametrize("seconds", ["1e308", "1e300"])
def test_stages_that_took_longer_than_anything_are_left_out(
    seconds: str, run: Path, known: Samples, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "stages.json").write_text(f'[["trace", {seconds}, 1.0]]')
    assert main(["show", str(run / "regions" / known.region.name / "trace.lat"), "--chrome", "-"]) == 0
    assert "layout-advise (wall time)" not in capsys.readouterr().out


NO_WORDS = b'[{"arguments": [], "command": "", "directory": ".", "file": "a.c"}]'


@pytest.mark.parametrize(
    "content", [NOT_TEXT, TOO_DEEP, NO_WORD, NO_WORDS], ids=["no UTF-8", "too deep", "no command", "an empty one"]
)
def test_a_compilation_database_that_is_no_json(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "commands.json").write_bytes(content)
    with pytest.raises(LayoutAdviseError):
        from_compile_commands(tmp_path / "commands.json")


@pytest.mark.parametrize("content", [b'a = "\xff"', b"a = " + TOO_DEEP], ids=["no UTF-8", "too deep"])
@pytest.mark.parametrize("kind", ["farm", "guard", "spec"])
def test_tables_that_are_no_toml(
    kind: str, content: bytes, known: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "given.toml"
    file.write_bytes(content)
    if kind == "guard":
        refused_in_one_line(capsys, "guard", "--check", str(file), "--", str(known.programs[0]))
        return
    with pytest.raises(LayoutAdviseError):
        read_list(file) if kind == "farm" else read_spec(known.folder / "step.cl", file)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("global = [64]", 'global = "64"'),
        ("global = [64]", "global = [-1]"),
        ("global = [64]", "global = [1, 1, 1, 1]"),
        ("calls = 10", "calls = 0"),
        ("calls = 10", "calls = true"),
        ("count = 64", "count = 4611686018427387904"),
        ("count = 64", "count = 1000000000000"),
        ("count = 64", 'count = "many"'),
        ("bytes = 256", "count = 0"),
        ("fill = 1.5", 'fill = "ones"'),
        ("low = 0, high = 2", "low = 9, high = 2"),
        ("low = 0, high = 2", "low = 0, high = 1e400"),
        ("{local = 64}", "{local = -64}"),
        ("{value = 0.5}", '{value = "x"}'),
        ("{value = 0.5}", "{value = [1, 2]}"),
        ("{value = 64}", "{value = 99999999999999999999}"),
        ("{value = 64}", "{}"),
        ("bytes = 256, fill = 1.5", 'file = "a\\u0000b"'),
        ("args = [", "args = 5\nother = ["),
    ],
)
def test_a_launch_of_wrong_types_or_sizes(written: str, instead: str, known: Samples, tmp_path: Path) -> None:
    assert written in SPEC
    (tmp_path / "spec.toml").write_text(SPEC.replace(written, instead))
    with pytest.raises(UsageError):
        read_spec(known.folder / "step.cl", tmp_path / "spec.toml")


def test_a_trace_whose_parts_do_not_fit_together(known: Samples) -> None:
    whole = read_trace(known.region / "trace.lat")
    check(whole)
    first = whole.references[0]
    for damaged in (
        replace(whole, streams=whole.streams[:-1]),
        replace(whole, references=(replace(first, bytes=0), *whole.references[1:])),
        replace(whole, references=(replace(first, pc=-1), *whole.references[1:])),
        replace(whole, mappings=(replace(whole.mappings[0], end=0), *whole.mappings[1:])),
    ):
        with pytest.raises(ValueError, match=r"has|have|is "):
            check(damaged)


def test_the_order_of_references_that_were_cut_off_can_be_drawn(known: Samples) -> None:
    whole = read_trace(known.region / "trace.lat")
    assert whole.control is not None
    beyond = replace(whole.control, pieces=tuple((999, 999) for _ in whole.control.pieces))
    assert len(events(replace(whole, control=beyond), [])) == len(events(whole, []))


def everything(path: Path) -> None:
    """Read what the road and the guard read of a program."""
    binary = ElfBinary.open(path)
    assert len((binary.build_id, binary.libraries, binary.stripped, binary.warnings, binary.variables)) == 5
    for function in binary.functions[:8]:
        for address in (function.start, function.start + 4):
            binary.line(address)
            binary.inlined(address)
            binary.frame_at(address)
        binary.producer_at(function.start)
    from_debug_information(path, None)


def image(path: Path) -> None:
    """Read a program as the lifter does."""
    open_image.cache_clear()
    found = open_image(str(path), 0x400000)
    for address in list(found.functions)[:8]:
        found.name_of(address)


def places(file: ElfFields, wanted: tuple[str, ...]) -> list[tuple[int, int]]:
    """Offsets and sizes of the file's own header and of the headers of the sections ``wanted``."""
    with_names: list[tuple[int, int]] = [(at, size) for at, size in file.fields if at < 64]
    start, size, count = struct.unpack_from("<Q", file.data, 40)[0], 64, struct.unpack_from("<H", file.data, 60)[0]
    names = struct.unpack_from("<Q", file.data, start + size * struct.unpack_from("<H", file.data, 62)[0] + 24)[0]
    for number in range(count):
        at = start + size * number
        name = names + struct.unpack_from("<I", file.data, at)[0]
        if file.data[name : file.data.index(b"\0", name)].decode() in wanted:
            with_names += [(at + offset, n) for offset, n in ((4, 4), (16, 8), (24, 8), (32, 8), (40, 4), (56, 8))]
    return with_names


@pytest.mark.parametrize("read", [pytest.param(everything, marks=pytest.mark.slow), image])
def test_no_odd_number_in_a_header_is_more_than_one_line(
    read: Callable[[Path], None], known: Samples, tmp_path: Path
) -> None:
    file, path = known.elf[0], tmp_path / "program"
    ends: set[int] = set()
    for at, size in places(file, (".debug_info", ".debug_line", ".eh_frame", ".symtab", ".dynamic")):
        for odd in (0, 1, -1, 0x7FFF, 1 << 31, *ODD_NUMBERS[-2:]):
            data = bytearray(file.data)
            data[at : at + size] = (odd & (1 << 8 * size) - 1).to_bytes(size, "little")
            path.write_bytes(data)
            path.chmod(0o755)
            try:
                read(path)
                ends.add(1)
            except LayoutAdviseError as error:
                ends.add(error.line().count("\n") - 1)
    assert ends == {1, -1}, "read, or refused in one line"


@pytest.mark.parametrize("offset", [1 << 62, (1 << 64) - 1, 1 << 40])
def test_a_segment_beyond_the_end_of_the_file_is_damage(offset: int, known: Samples, tmp_path: Path) -> None:
    """No section says that it lies there, so that nothing but the program's code is read from it."""
    data = bytearray(known.elf[0].data)
    table, size, count = struct.unpack_from("<Q", data, 32)[0], 56, struct.unpack_from("<H", data, 56)[0]
    loaded = [table + size * k for k in range(count) if struct.unpack_from("<I", data, table + size * k)[0] == 1]
    for place in loaded:
        struct.pack_into("<Q", data, place + 8, offset)
    path = tmp_path / "program"
    path.write_bytes(data)
    path.chmod(0o755)
    with pytest.raises(BinaryError, match="beyond the end"):
        ElfBinary.open(path)


@pytest.mark.parametrize("size", range(13))
def test_a_table_of_frames_that_is_cut_short(size: int, known: Samples, tmp_path: Path) -> None:
    data = bytearray(known.elf[0].data)
    elf = ELFFile(io.BytesIO(bytes(data)))
    number = elf.get_section_index(".eh_frame_hdr")
    assert number is not None
    struct.pack_into("<Q", data, elf["e_shoff"] + 64 * number + 32, size)
    path = tmp_path / "program"
    path.write_bytes(data)
    path.chmod(0o755)
    assert "step" in [one.name for one in ElfBinary.open(path).functions]


def inside_the_reader(error: str) -> Callable[[], None]:
    """A function that raises as one of pyelftools' modules does on damaged input."""
    module: dict[str, Any] = {"__name__": "elftools.some.module", "struct": struct}
    exec(f"def read():\n    raise {error}('within')", module)
    found: Callable[[], None] = module["read"]
    return found


@pytest.mark.parametrize("error", ["KeyError", "AssertionError", "OverflowError", "AttributeError", "struct.error"])
def test_what_the_reader_of_elf_stumbles_over_is_the_files_fault(error: str) -> None:
    with pytest.raises(BinaryError, match="damaged"), damage_named("program"):
        inside_the_reader(error)()
    assert without_damaged(None)(inside_the_reader(error))() is None
    with pytest.raises(KeyError, match="our own"), damage_named("program"):
        raise KeyError("our own")


@CONTENTS
def test_kept_rows_of_a_farm_that_are_no_json(content: bytes, tmp_path: Path) -> None:
    for path in (tmp_path / "rows" / "machine" / "a.json", tmp_path / "rows" / "machine" / "native" / "a.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert read_rows(tmp_path, {"a": "1"}, native=False) == []
