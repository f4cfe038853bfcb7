"""Room for a jump: behind what returns or jumps away there may be padding, which nothing reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.errors import SnapshotError
from layout_advise.tracer.process.patching import JUMP_BYTES, Entry, padding, plan_exit, plan_patch

PATH = Path("/program")
MOVE, RETURN, PUSH = b"\x48\x89\xf8", b"\xc3", b"\x55"
NOPS = bytes.fromhex("90 6690 0f1f00 0f1f4000 662e0f1f840000000000")
"""As gcc and clang write them: of one, two, three, four and ten bytes."""


@pytest.mark.parametrize(
    ("code", "found"), [(NOPS + PUSH, len(NOPS)), (b"\xcc" * 7, 7), (PUSH + NOPS, 0), (b"\xf3\x0f\x1e\xfa", 0), (b"", 0)]
)
def test_padding_is_what_does_nothing(code: bytes, found: int) -> None:
    assert padding(code) == code[:found]


@pytest.mark.parametrize("behind", [NOPS, b"\xcc" * 4, b"\x90\x90" + PUSH * 4])
def test_a_short_end_has_room_with_the_padding_behind_it(behind: bytes) -> None:
    found = plan_exit(Entry(PATH, 0x1000, MOVE + RETURN + behind))
    assert (found.size, found.blob, found.int3) == (JUMP_BYTES, MOVE + RETURN, False)
    assert found.original == (MOVE + RETURN + behind)[:JUMP_BYTES]
    assert not plan_patch(Entry(PATH, 0x1000, MOVE + RETURN + behind)).int3


@pytest.mark.parametrize("behind", [b"", PUSH * 8, b"\x90" + PUSH])
def test_what_may_be_anothers_is_no_room(behind: bytes) -> None:
    with pytest.raises(SnapshotError, match="cannot watch the end"):
        plan_exit(Entry(PATH, 0x1000, RETURN + behind))
    assert plan_patch(Entry(PATH, 0x1000, RETURN + behind)).int3
