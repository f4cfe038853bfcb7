"""Which functions that a region calls its mock-ups have in them, and what that is told to gain."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise.decide.decision import Decision
from layout_advise.decide.loop import compiled_in, loop_advice
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_RESTRICT, ORIGINAL
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.tracer.code.instructions import decode, references_of
from layout_advise.tracer.program.binary import ElfBinary

BITS = """
#define APART __attribute__((noipa))
static APART int bit(const unsigned char *bits, long k) { return bits[k >> 3] >> (k & 7) & 1; }
static APART int both(const unsigned char *bits, long k) { return 2 * bit(bits, k) + bit(bits, k + 1); }
static APART int seldom(const unsigned char *bits) { return bits[0]; }
APART long count(const unsigned char *bits, long n)
{
    long all = 0;
    for (long k = 0; k < n; k++)
        all += both(bits, 2 * k);
    return all < 0 ? seldom(bits) : all;
}"""


def test_only_what_the_call_went_through_counts(tmp_path: Path) -> None:
    (tmp_path / "bits.c").write_text(BITS)
    library = tmp_path / "bits.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, tmp_path / "bits.c"], check=True)
    main = ElfBinary.open_module(library)
    region = main.region(main.find("count"), 0, callees=True)
    lifted = lift(region)
    seldom, every = main.region(main.find("seldom"), 0), references_of(decode(region))
    trace = SimpleNamespace(references=every, streams=[None if seldom.contains(one.pc) else () for one in every])
    assert None in trace.streams
    assert set(compiled_in(region, cast("Any", trace), lifted)) == {"bit", "both"}
    nothing = SimpleNamespace(references=every, streams=[None] * len(every))
    assert compiled_in(region, cast("Any", nothing), lifted) == ()


@pytest.mark.parametrize(
    ("plain", "restrict", "called", "form", "gain", "text"),
    [
        (520.0, 519.0, ("mer_ndx", "test"), "identity", 1.92, "compile `mer_ndx` and `test` into it"),
        (520.0, 400.0, ("test",), "identity-restrict", 2.5, "declare its pointers `restrict`, and compile `test` into it"),
        (520.0, 400.0, (), "identity-restrict", 1.3, "declare its pointers `restrict`"),
        (1300.0, 700.0, ("test",), "identity-restrict", 1.43, "declare its pointers `restrict`, and compile `test` into it"),
        (950.0, 949.0, ("test",), None, 0.0, ""),
        (520.0, 519.0, (), None, 0.0, ""),
    ],
    ids=["calls", "both", "no-calls", "slower-without", "little", "neither"],
)
def test_what_calls_in_the_mockup_gain_is_told_as_that(
    plain: float,
    restrict: float,
    called: tuple[str, ...],
    form: str | None,
    gain: float,
    text: str,
) -> None:
    """prodigal: 1.92 times as fast with what it calls compiled in, told as a doubt about the mock-up."""
    each = [{ORIGINAL: [1000.0 + k], IDENTITY: [plain + k], IDENTITY_RESTRICT: [restrict + k]} for k in range(5)]
    keep = Verdict("keep", None, None, "no-gain", "Keep it.")
    advice = loop_advice(Decision(Timings(steady=each), None, "steady", keep, None, "criu"), 1.05, called)
    assert (advice.form if advice is not None else None) == form
    if advice is not None:
        assert advice.gain.median == pytest.approx(gain, rel=0.03)
        assert advice.text.startswith(text)
