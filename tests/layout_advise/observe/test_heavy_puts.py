"""Where what is put back between the calls of a batch outweighs them, they are timed one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from layout_advise.choose.batches import CallBatch
from layout_advise.observe.stage import _traced
from layout_advise.progress import Progress


@pytest.mark.parametrize(
    ("each", "words", "outweighs"),
    [(18_000.0, 2_272_000, True), (18_000.0, 400_000, False), (2_000.0, 2_272_000, False), (10_000.0, 450_000, True)],
)
def test_calls_that_are_long_enough_are_timed_one_by_one(each: float, words: int, outweighs: bool) -> None:
    """sampo: of batches of 1.6 ms, 0 to 12 ms were left when the time for 2,272,000 words was taken off."""
    calls = round(1_638_000 / each)
    recorded: Any = SimpleNamespace(first=5, part=lambda first, size: None)
    batch = CallBatch(calls, recorded, (each,) * calls)
    assert batch.outweighs(words) == outweighs

    refused: list[str] = []
    space, chosen = SimpleNamespace(progress=Progress(quiet=True)), SimpleNamespace(call=5)
    one, several = (SimpleNamespace(puts=n, touched=(), trace=SimpleNamespace(truncated=False)) for n in (None, words))
    alone: Any = SimpleNamespace(batch=None, chosen=chosen, space=space, observe=lambda parked, call: one)

    def unbatched(why: str) -> Any:
        refused.append(why)
        return alone

    together: Any = SimpleNamespace(batch=batch, chosen=chosen, space=space, observe=lambda parked, call: several)
    together.unbatched = unbatched
    parked: Any = SimpleNamespace(mappings_at_park=list, own_ranges=tuple, unbatch=lambda: refused.append("one call"))
    found: Any = _traced(together, parked)
    assert found == ((alone, one) if outweighs else (together, several))
    told = "what the program writes between them takes as long to put back as they take"
    assert refused == ([told, "one call"] if outweighs else [])
