"""Where what is put back between the calls of a batch outweighs them, they are timed one by one; where it is more than is
kept, fewer of them are a batch."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise.choose.batches import CallBatch
from layout_advise.errors import SettleError, TooMuchWrittenError
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


@dataclass(frozen=True)
class Written:
    """A case whose batch of ``calls`` can be repeated with what the program writes between them where there are at most
    ``most``; without that (``why``), always."""

    calls: int
    most: int
    why: str = ""
    other: bool = False
    chosen = SimpleNamespace(call=5)
    space = SimpleNamespace(progress=Progress(quiet=True))

    @property
    def batch(self) -> CallBatch:
        recorded: Any = SimpleNamespace(first=5, part=lambda first, size: recorded)
        return CallBatch(self.calls, recorded, (2_000.0,) * self.calls)

    def observe(self, parked: object, call: int) -> Any:
        if self.calls > self.most and not self.why:
            raise (SettleError if self.other else TooMuchWrittenError)("repeating the calls", "too much")
        return SimpleNamespace(puts=None, touched=(), trace=SimpleNamespace(truncated=False))

    def with_fewer_calls(self, why: str) -> Written:
        return Written(self.calls // 4, self.most)

    def alone(self, why: str) -> Written:
        return Written(self.calls, self.most, why)


@pytest.mark.parametrize(("most", "calls"), [(800, 800), (200, 200), (60, 50), (1, 800)])
def test_of_fewer_calls_less_is_written(most: int, calls: int) -> None:
    """Where it is too much for as few as can be timed, all are repeated without it; so they are for other reasons."""
    parked: Any = SimpleNamespace(mappings_at_park=list, own_ranges=tuple)
    cases: list[Any] = [Written(800, most), Written(800, most, other=True)]
    found, without = (cast("Any", _traced(case, parked)[0]) for case in cases)
    assert (found.batch.size, found.why) == (calls, "too much" if most == 1 else "")
    assert (without.batch.size, without.why) == (800, "" if most == 800 else "too much")
