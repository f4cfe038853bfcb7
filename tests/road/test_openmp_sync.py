"""Parallel regions whose threads share work out, wait for each other and add up: lifted, compared, or refused by name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.errors import NotLiftedError, TraceError
from layout_advise.mockup.ir.lifted import Atomic, RuntimeCall
from layout_advise.mockup.machine.openmp_runtime import refusal_remark
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.openmp_regions import is_region_body, region_entry
from tests.support import slower
from tests.support.compilers import HASWELL
from tests.support.openmp.road import assert_same_bytes, trace_and_compare
from tests.support.openmp.sync_programs import DETERMINISTIC, KINDS, REFUSED, ROUNDED, build, lifted_region, nested_items

FAR = [("sum", 3, ("-O2",)), ("dynamic sum", 2, HASWELL), ("critical", 2, HASWELL), ("hits", 3, HASWELL)]


@pytest.mark.parametrize("flags", [("-O2",), pytest.param(HASWELL, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_region_is_lifted_with_its_calls(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    made = nested_items(lifted_region(build(tmp_path, DETERMINISTIC[name], *flags)).body)
    assert "master" in name or "chunks" in name or any(isinstance(i, Atomic | RuntimeCall) for i in made)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_repeated_is_refused_by_name_and_says_why(tmp_path: Path, name: str) -> None:
    body, function = REFUSED[name]
    with pytest.raises(NotLiftedError) as refused:
        lifted_region(build(tmp_path, body))
    assert f"calls {function}" in refused.value.line()
    assert refusal_remark(function) in refused.value.line()
    assert refusal_remark(function)


def test_a_body_that_no_runtime_is_handed_is_refused_by_name(tmp_path: Path) -> None:
    source, program = tmp_path / "clang.c", tmp_path / "clang"
    source.write_text('void body(void) __asm__(".omp_outlined."); void body(void) {} int main(void) { body(); }')
    subprocess.run(["gcc", "-o", program, source], check=True)
    binary = ElfBinary.open(program)
    with pytest.raises(TraceError, match="nothing in its file calls __kmpc_fork_call; only regions of libgomp and libomp"):
        region_entry(binary, next(f for f in binary.functions if is_region_body(f)), ())


def test_other_locked_instructions_are_refused_by_name(tmp_path: Path) -> None:
    body = '_Pragma("omp parallel") __asm__ volatile("lock btsq $3, %0" : "+m"(total));'
    with pytest.raises(NotLiftedError, match=r"lock bts.*atomic operation \(lock\)"):
        lifted_region(build(tmp_path, body))


@pytest.mark.parametrize("name", [*slower(("sum",), ("dynamic sum",), ("critical",)), "array"])
def test_two_threads_leave_the_same_bytes(tmp_path: Path, name: str) -> None:
    compared(tmp_path, DETERMINISTIC[name], 2, "-O2")


@pytest.mark.slow
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_every_kind_of_region_leaves_the_same_bytes(tmp_path: Path, name: str) -> None:
    compared(tmp_path, DETERMINISTIC[name], 2, "-O2")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "threads", "flags"), FAR)
def test_other_teams_and_flags_leave_the_same_bytes(tmp_path: Path, name: str, threads: int, flags: tuple[str, ...]) -> None:
    compared(tmp_path, DETERMINISTIC[name], threads, *flags)


def compared(folder: Path, body: str, threads: int, *flags: str) -> None:
    assert_same_bytes(build(folder, body, *flags), threads, folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUNDED)
def test_sums_of_three_threads_are_compared_up_to_rounding(tmp_path: Path, name: str) -> None:
    _, found = trace_and_compare(build(tmp_path, ROUNDED[name]), 3, tmp_path)
    assert found.pop("c1-wrong").reason is not None
    assert {finding.reason for finding in found.values()} == {None}
    assert {finding.evidence for finding in found.values()} <= {"verified", "close"}
    assert all(finding.bytes_changed > 0 for finding in found.values())
