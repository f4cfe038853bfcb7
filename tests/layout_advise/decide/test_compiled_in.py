"""Which functions that a region calls its mock-ups have in them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from layout_advise.decide.loop import compiled_in
from layout_advise.mockup.lift.lift import lift
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
