"""Everything that reads a file which somebody else may have made or damaged: one function each, from a generator of random
numbers to nothing. They use the tool's own commands where there is one. What they raise besides LayoutAdviseError is a
fault.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from layout_advise import rundir
from layout_advise.apply.sources import from_compile_commands, from_debug_information
from layout_advise.cli import parser
from layout_advise.commands.layout import rule
from layout_advise.emit.languages import WRITERS
from layout_advise.farm.listing import jobs_of, read_list
from layout_advise.mockup.machine.image import open_image
from layout_advise.notebook.session import open_run
from layout_advise.opencl.host.spec import read_spec
from layout_advise.reports.model.contract import read_report
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.records.find import find_records, find_variables
from tests.support.fuzzing import raw_bytes, trees
from tests.support.fuzzing.chunked import damaged_trace
from tests.support.fuzzing.elf_fields import damaged_elf
from tests.support.fuzzing.samples import COMPILE_COMMANDS, TERMS, Samples

Reader = Callable[[Random, Samples], None]
FORMS = ("text", "html", "md", "sarif", "csv", "notes", "github", "json")


@cache
def _parser() -> argparse.ArgumentParser:
    return parser()


def command(*words: str) -> int:
    """One command of the tool; what it prints is dropped."""
    arguments = _parser().parse_args(words)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return int(arguments.carry_out(arguments))


def _json(random: Random, tree: object) -> bytes:
    tree = trees.damaged(random, tree)
    data = trees.as_json(tree) if random.random() < 0.9 else json.dumps(tree).encode()  # the other one writes NaN, too
    data = trees.nested(random, data.decode()).encode() if random.random() < 0.01 else data
    return data if random.random() < 0.85 else raw_bytes.damaged(random, data)


def _toml(random: Random, table: object) -> bytes:
    text = trees.toml(trees.damaged(random, table))
    data = (trees.nested(random, text) if random.random() < 0.01 else text).encode(errors="surrogatepass")
    return data if random.random() < 0.8 else raw_bytes.damaged(random, data)


def _run(random: Random, known: Samples) -> str:
    """A run whose report is damaged; its folder is used again each time."""
    folder = known.folder / f"read{os.getpid()}"
    folder.mkdir(exist_ok=True)
    (folder / "report.json").write_bytes(_json(random, known.report))
    return str(folder)


def report(random: Random, known: Samples) -> None:
    """report.json, in one of the forms."""
    form = random.choice(FORMS)
    words = [word for word in ("-v", "--no-source", "-q") if random.random() < 0.3]
    command("report", _run(random, known), *(("--format", form) if form != "text" else ()), *words)


def notebook(random: Random, known: Samples) -> None:
    """report.json as a run in a notebook."""
    run = open_run(_run(random, known))
    for text in (run.regions._repr_html_(), run.structures._repr_html_(), run.candidates._repr_html_(), repr(run)):
        assert text
    for one in list(run.candidates)[:4]:
        run.layout(one.id)._repr_html_()


def compare(random: Random, known: Samples) -> None:
    """A damaged report against a whole one, either way round."""
    pair = [_run(random, known), str(known.run)]
    random.shuffle(pair)
    command("compare", *pair, *random.choice(((), ("--json", "-"), ("--markdown", "-"))))


def emit(random: Random, known: Samples) -> None:
    """candidates.json and report.json."""
    folder = Path(_run(random, known))
    if random.random() < 0.8:
        (folder / "report.json").write_bytes((known.run / "report.json").read_bytes())
    (folder / "regions" / "step").mkdir(parents=True, exist_ok=True)
    (folder / "regions" / "step" / "candidates.json").write_bytes(_json(random, known.candidates))
    command("emit", str(folder), "--as", random.choice(tuple(WRITERS)))


def show(random: Random, known: Samples) -> None:
    """trace.lat and stages.json."""
    folder = known.folder / f"show{os.getpid()}"
    folder.mkdir(exist_ok=True)
    (folder / "trace.lat").write_bytes(damaged_trace(random, known.trace))
    (folder / "stages.json").write_bytes(_json(random, [["sample", 0.0, 1.0], ["trace", 1.0, 2.0]]))
    command("show", str(folder), *random.choice(((), ("-v", "-n", "0"), ("--json", "-"), ("--csv", "-"), ("--chrome", "-"))))


def marker(random: Random, known: Samples) -> None:
    """run.json of a folder that a run is to go into."""
    folder = known.folder / f"open{os.getpid()}"
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_bytes(_json(random, json.loads((known.run / "run.json").read_bytes())))
    with rundir.open_run(folder, force=random.random() < 0.5):
        pass


def guard(random: Random, known: Samples) -> None:
    """A guard's file, held against a whole program."""
    file = known.folder / f"guard{os.getpid()}"
    file.write_bytes(_toml(random, known.guard))
    command("guard", "--check", str(file), "--", str(random.choice(known.programs)))


def guard_of_run(random: Random, known: Samples) -> None:
    """A guard made of a damaged report."""
    command("guard", _run(random, known), "--module", str(random.choice(known.programs)))


def farm(random: Random, known: Samples) -> None:
    """A list of programs."""
    file = known.folder / f"farm{os.getpid()}"
    file.write_bytes(_toml(random, known.farm))
    for job in itertools.islice(jobs_of(read_list(file), file.parent), 100):
        job.digest((), "1")


def spec(random: Random, known: Samples) -> None:
    """The description of a kernel's launch."""
    file = known.folder / f"spec{os.getpid()}"
    file.write_bytes(_toml(random, known.spec))
    read_spec(known.folder / "step.cl", file)


def compile_commands(random: Random, known: Samples) -> None:
    """A compilation database."""
    file = known.folder / f"commands{os.getpid()}"
    file.write_bytes(_json(random, json.loads(COMPILE_COMMANDS)))
    from_compile_commands(file)


def term(random: Random, known: Samples) -> None:
    """A term and a rule, as they are written on the command line."""
    text = raw_bytes.damaged(random, random.choice(TERMS).encode()).decode("utf-8", "replace")
    words = [f"--rule={random.choice(('4@0', '5@0:4', '9@1:0,2', '7@2', '1@0:2'))}"] if random.random() < 0.5 else []
    with contextlib.suppress(argparse.ArgumentTypeError):
        rule(raw_bytes.damaged(random, b"5@0:4").decode("utf-8", "replace"))
    command("layout", *words, "--", text)


def _program(random: Random, known: Samples) -> Path:
    file = known.folder / f"elf{os.getpid()}"
    file.write_bytes(damaged_elf(random, known.elf))
    file.chmod(0o755)
    return file


def elf(random: Random, known: Samples) -> None:
    """A program: its symbols, lines, inlined calls, frames, types and variables."""
    binary = ElfBinary.open(_program(random, known))
    found = (binary.build_id, binary.libraries, binary.stripped, binary.warnings, binary.variables)
    assert len(found) == 5
    for function in binary.functions[:24]:
        for address in range(function.start, min(function.end, function.start + 64), 9):
            binary.line(address)
            binary.inlined(address)
            binary.frame_at(address)
        binary.producer_at(function.start)
        binary.read(function.start, min(function.size, 4096))


def types(random: Random, known: Samples) -> None:
    """A program's records and variables, as the guard reads them."""
    binary = ElfBinary.open_module(_program(random, known))
    find_records(binary.debug, {"particle", "n::cell", "n::box<double>"})
    find_variables(binary.debug, {"spare", "all"})


def sources(random: Random, known: Samples) -> None:
    """The source files that a program's debugging information names."""
    from_debug_information(_program(random, known), None)


def image(random: Random, known: Samples) -> None:
    """A program as the lifter reads it."""
    open_image.cache_clear()
    found = open_image(str(_program(random, known)), 0x400000)
    for address in itertools.islice(found.functions, 24):
        found.name_of(address)


def whole_report(random: Random, known: Samples) -> None:
    """Not the report's text but its model only: ten times as many inputs in the same time."""
    read_report(Path(_run(random, known)))


READERS: dict[str, tuple[Reader, int]] = {
    "report": (report, 4),
    "model": (whole_report, 12),
    "notebook": (notebook, 2),
    "compare": (compare, 6),
    "emit": (emit, 6),
    "show": (show, 12),
    "marker": (marker, 6),
    "guard": (guard, 6),
    "guard-of-run": (guard_of_run, 4),
    "farm": (farm, 8),
    "spec": (spec, 2),
    "compile-commands": (compile_commands, 8),
    "term": (term, 8),
    "elf": (elf, 4),
    "types": (types, 6),
    "sources": (sources, 4),
    "image": (image, 2),
}
"""By name each reader, and its part of a campaign: the quick ones have more inputs."""
