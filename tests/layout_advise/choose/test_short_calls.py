"""Short calls that are not what a batch of the first ones shows: the time is elsewhere, or what a call has to do is laid out
for it by what the program does before it."""

from __future__ import annotations

import subprocess
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from layout_advise.choose import batches, short_calls
from layout_advise.choose.batches import plan_batch
from layout_advise.choose.by_time import Window
from layout_advise.choose.calls import ChosenCall
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import profile
from layout_advise.choose.short_calls import plan_short_calls
from layout_advise.config import Settings
from layout_advise.errors import ProgramError
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.tracer.process.channel import MAX_TIMED
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.probe import Probe
from layout_advise.tracer.snapshot.between import Between
from layout_advise.tracer.snapshot.recorded_calls import RECORDED, Calls
from tests.support.command import advise

LATER = r"""
#include <stdlib.h>
struct item { double now, was, rest[6]; };
__attribute__((noipa)) void work(struct item *items, long n)
{
    for (long i = 0; i < n; i++)
        items[i].now += items[i].was;
}
int main(void)
{
    struct item *items = calloc(100000, sizeof *items);
    for (long i = 0; i < 100000; i++)
        items[i].was = i;
    for (long k = 0; k < 20000; k++)
        work(items, k % 2);
    for (long k = 0; k < 200000; k++)
        work(items, k % 100 ? 0 : 100000 - k % 700);
    return items[7].now > 1e9;
}
"""
"""The first calls do nothing, and so do most of the others."""

QUEUE = r"""
#include <stdlib.h>
struct item { double now, was, rest[6]; };
struct queue { struct item *items; long done, end; };
__attribute__((noipa)) void work(struct queue *q)
{
    for (; q->done < q->end; q->done++)
        q->items[q->done].now += q->items[q->done].was;
}
int main(void)
{
    static struct queue q;
    q.items = calloc(100000, sizeof *q.items);
    for (long i = 0; i < 100000; i++)
        q.items[i].was = i;
    for (long k = 0; k < 100000; k++) {
        q.done = 0;
        q.end = k % 50 ? 300 : 100000;
        work(&q);
    }
    return q.items[7].now > 1e9;
}
"""
"""A call does what was queued before it: again at once it does nothing."""

FLOOD = QUEUE.replace("q.done = 0;", "q.done = 0; for (long i = 0; i < 100000; i++) q.items[i].was = i + k;")
FLOOD = FLOOD.replace(": 100000;", ": 400;").replace("k < 100000", "k < 4000")
"""And much is written before each."""


def built(text: str, folder: Path) -> Path:
    (folder / "calls.c").write_text(text)
    subprocess.run(["gcc", "-g", "-O2", "-o", folder / "calls", folder / "calls.c"], check=True)
    return folder / "calls"


def studied(text: str, folder: Path) -> HotspotReport:
    (hotspot,) = advise([built(text, folder)], "--restores", "3", "--hotspot", "work", folder=folder).hotspots
    return hotspot


@pytest.mark.slow
@pytest.mark.parametrize("text", [LATER, QUEUE], ids=["later", "queue"])
def test_what_has_the_time_is_studied(text: str, tmp_path: Path) -> None:
    """One long call by itself, or a batch with what the program writes between its calls."""
    hotspot = studied(text, tmp_path)
    if text is LATER:
        assert hotspot.batch is None
        assert hotspot.call % 100 == 1  # one of those with most of the time
    else:
        assert hotspot.batch is not None
        assert hotspot.batch.calls > 50  # long ones among them
        assert hotspot.batch.put_back
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified"
    compact = [c for c in hotspot.candidates if "compact" in c.families and c.evidence == "verified"]
    compared = 3 * (hotspot.batch.calls if hotspot.batch is not None else 1)
    assert all(c.verification is not None and c.verification.calls == compared for c in compact)
    assert compact


@pytest.mark.slow
def test_without_long_calls_the_reason_is_told(tmp_path: Path) -> None:
    hotspot = studied(FLOOD, tmp_path)
    assert hotspot.verdict.reason == "not-in-situ"
    assert "repeated without what the program writes between them" in hotspot.verdict.text


def test_calls_that_cannot_be_recorded_are_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> Calls:
        raise ProgramError("cannot record calls of work", "it was ended by SIGSEGV")

    program = built(QUEUE, tmp_path)
    settings = Settings((str(program),), tmp_path / "run", hotspot="work", timeout=60)
    profiled = profile(settings, ElfBinary.open_module(str(program)), None)
    seen = Probe(100_000, (), None, None, stopped=True, threads=1, nested=0, seconds=1.0)
    chosen, window = ChosenCall(5, 100_000, 700.0, 0.0), Window(1, (700.0,) * 4096)
    monkeypatch.setattr(batches, "record_calls", fails)
    found, why = plan_batch(settings, profiled, None, seen, chosen, window)
    assert found == chosen
    assert why == "they could not be recorded: cannot record calls of work: it was ended by SIGSEGV"


@pytest.mark.parametrize(("ns", "size"), [(700.0, 200), (60.0, 2858), (4.0, None)])
def test_where_calls_known_between_are_too_quick_all_of_them_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ns: float, size: int | None
) -> None:
    """They were as long as it takes when they were planned, and are not when the batch is timed."""
    program = built(QUEUE, tmp_path)
    settings = Settings((str(program),), tmp_path / "run", hotspot="work", timeout=60)
    profiled = profile(settings, ElfBinary.open_module(str(program)), None)
    seen = Probe(100_000, (), None, None, stopped=True, threads=1, nested=0, seconds=1.0)
    chosen, window = ChosenCall(5, 100_000, 700.0, 0.0), Window(1, (700.0,) * 4096)

    def recorded(_: object, __: object, first: int, count: int, **___: object) -> Calls:
        return Calls(
            first,
            bytes(count * RECORDED),
            Between(np.zeros(600, np.uint64), np.arange(1, 601, dtype=np.uint64), np.zeros(0, np.uint64), "no room"),
        )

    monkeypatch.setattr(batches, "record_calls", recorded)
    monkeypatch.setattr(batches, "in_situ_runs", lambda *given: (batches.TimedRun((ns,) * given[4]),) * 3)
    found, batch = plan_batch(settings, profiled, None, seen, chosen, window)
    if size is None:
        assert batch == "2,858 of its calls in a row take less than 20 µs"
        assert found == chosen
        return
    assert isinstance(batch, batches.CallBatch)
    assert (batch.size, batch.unknown, batch.calls.between is None) == (size, "no room", size > 200)
    assert (found.call, found.in_situ_ns) == (batch.calls.first, ns * size)


@pytest.mark.parametrize(("seconds", "gone_through"), [(0.9, False), (1.1, True)])
def test_a_billion_calls_of_a_few_ns_are_not_gone_through(
    seconds: float, gone_through: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """prodigal's `test`, a bit of a map: three further runs of a minute, to say that its calls are too short."""

    def first_calls(*_: object) -> Window:
        raise ProgramError("the program is run again")

    monkeypatch.setattr(short_calls, "first_calls", first_calls)
    calls = int(1e9 * MAX_TIMED / CHOOSE.short_call_ns)  # in a second they would just do
    run = SimpleNamespace(cpu_seconds=2 * seconds)
    profiled: Any = SimpleNamespace(share=0.5, run=run)
    chosen = ChosenCall(5, calls, 4.0, 0.0)
    seen: Any = SimpleNamespace(calls=calls)
    settings = Settings(command=("calls",), output=Path("calls.layout"))
    with pytest.raises(ProgramError) if gone_through else nullcontext():
        told = plan_short_calls(settings, profiled, None, seen, chosen)
        assert told == (chosen, f"{MAX_TIMED:,} of its calls in a row take less than 20 µs")
