"""Calls of code that is not traced with a region, and of which a trace does not tell what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.tracer.code.calls_out import calls_out, calls_unseen
from layout_advise.tracer.code.instructions import decode
from tests.support.tracing.assembled import BASE, assemble

CODE = """
    test rdi, rdi
    je 1f
    call inner
1:  call rax
    call inner
    call inner + 0x100000
    ret
inner:
    ret
"""


@pytest.fixture
def calls(tmp_path: Path) -> list[int]:
    return [at for at, insn in sorted(decode(assemble(tmp_path, CODE)).items()) if insn.flow in ("call", "call-indirect")]


def test_what_a_trace_tells_of(calls: list[int], tmp_path: Path) -> None:
    region = assemble(tmp_path, CODE)
    first, picked, again, far = calls
    inner = max(decode(region))
    assert calls_unseen(region, (), ()) == {picked, far}
    assert calls_unseen(region, (), [(picked, (inner,))]) == {far}
    assert calls_unseen(region, (), [(picked, (inner, BASE + 0x9000))]) == {picked, far}
    assert calls_unseen(region, (first,), [(picked, (inner,))]) == {first, far}
    assert again not in calls_unseen(region, (first,), ())
    assert calls_out(region)
    assert calls_out(region, (first,))
