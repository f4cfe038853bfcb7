"""What `apply` wrote from a run is recognised in the changed program, though its block has no type."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.compare.applied import NOTE, AppliedLayout, applied_in, note
from layout_advise.compare.confirm import confirmed
from layout_advise.errors import SourceError
from layout_advise.guard.from_run import written
from layout_advise.reports.model.contract import Report
from layout_advise.tracer.program.binary import ElfBinary
from tests.support.changed.compared_runs import after, before, region, structure

REF = "typedef struct particle_ref { char *base; unsigned long count; long at; } particle_ref;\n"
USE = "double first(particle_ref p) { return *(double *)(p.base + p.at * 8); }\n"
PLAIN = "struct particle { double x, vx; };\ndouble first(struct particle *p) { return p->vx; }\n"


def built(folder: Path, source: str) -> ElfBinary:
    path = folder / "p.c"
    path.write_text(f"{source}int main(void) {{ return 0; }}\n")
    subprocess.run(["gcc", "-O2", "-g", str(path), "-o", str(folder / "p")], check=True)
    return ElfBinary.open_module(folder / "p")


def changed_run() -> Report:
    """A run of the changed program: one block of numbers without a type."""
    block = structure("heap block of p.c:9", "f0", type=None)
    return after((block,), 100.0)


def test_the_written_layout_is_recognised(tmp_path: Path) -> None:
    run = tmp_path / "old.layout"
    run.mkdir()
    best = region(before()).candidates[0].id
    note(run, AppliedLayout(best, (("particle_ref", "particle_ptr"),)))
    assert applied_in(built(tmp_path, PLAIN), run) is None
    assert applied_in(built(tmp_path, REF + USE), run) == best
    without = region(confirmed(changed_run(), before(), run)).baseline
    known = region(confirmed(changed_run(), before(), run, best)).baseline
    assert without is not None
    assert known is not None
    assert (without.candidate, known.candidate) == (None, best)
    assert "none of the layouts tried" in without.text
    assert f"({best}:" in known.text


def test_notes_that_are_damaged_or_of_another_run_tell_nothing(tmp_path: Path) -> None:
    binary = built(tmp_path, REF + USE)
    run = tmp_path / "old.layout"
    note(run, AppliedLayout("c1", (("particle_ref",),)))  # no such folder: nothing is written
    assert not run.exists()
    run.mkdir()
    for text in (b"", b"\xff\xfe", b"[]", b'{"candidate": 3}', b'{"candidate": "c1", "references": []}'):
        (run / NOTE).write_bytes(text)
        assert applied_in(binary, run) is None


def test_a_block_without_a_type_is_guarded_by_what_stands_for_its_pointers(tmp_path: Path) -> None:
    found = written(changed_run(), built(tmp_path, REF + USE))
    assert [(one.name, list(one.members)) for one in found.guard.type] == [("particle_ref", ["base", "count", "at"])]
    assert "apply --guard" in found.left_out[0]
    with pytest.raises(SourceError, match="nothing to guard"):
        written(changed_run(), built(tmp_path, PLAIN))
