"""What was not tried is told beside a `keep`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from layout_advise.decide.untried import doubt_own, doubt_unknown, own_part, with_untried, with_untried_kinds, without_hope
from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.layoutalgebra.explore.relayout import ALIGN
from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Loop, Point
from layout_advise.layoutalgebra.terms.text import parse
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_kinds import Other, Others
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.objects.attribution import Attribution, ObjectTouch
from layout_advise.tracer.objects.memory_object import MemoryObject
from layout_advise.tracer.trace.trace import Reference, Registers, Trace

BASES = (4096, 8192)


def observed(accesses: tuple[int | None, int], inexact: str | None, *, fields: bool = True) -> Observation:
    """Two structures, the first of which may not be recognised, each touched by a reference of its own; ``None``: so often
    that it is not known, in 700 accesses."""
    counts = [700 if n is None else n for n in accesses]
    shapes = [
        Structure(f"s{k}", f"a{k}", base, 800, (Dim(100, 8),), (Field("f0", 0, 8),) if fields else (), inexact=why)
        for k, (base, why) in enumerate(zip(BASES, (inexact, None), strict=True))
    ]
    streams = tuple(FoldedStream((Loop(Affine(n), (Point(Affine(b)),)),), n) for b, n in zip(BASES, counts, strict=True))
    references = tuple(Reference(k, 0x10 + k, 0, "read", 8) for k in range(2))
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    trace = Trace("f", 1, "step", references, streams, sum(counts), False, registers, (), ())
    objects = tuple(MemoryObject("heap", f"a{k}", base, 800) for k, base in enumerate(BASES))
    touches = tuple((ObjectTouch(k, n),) for k, n in enumerate(accesses))
    derived = tuple(Derived(shape, None, 8, 0, False, shape.inexact) for shape in shapes)
    region = Region("f", "function", 0x10, (), "", 0)
    return Observation(region, trace, derived, (), (), attribution=Attribution(objects, touches, (None, None)))


@pytest.mark.parametrize(
    ("accesses", "share"), [((1000, 100), "91%"), ((None, 300), "70%"), ((12, 100), "11%"), ((4, 100), ""), ((0, 0), "")]
)
@pytest.mark.parametrize("fields", [True, False])
def test_what_was_not_recognised_is_told_beside_a_keep(accesses: tuple[int | None, int], share: str, fields: bool) -> None:
    """An equaliser's state, an array in a record, was no grid: "keep it", where a structure of arrays gains 1.1."""
    keep = Verdict("keep", None, None, "no-gain", "Keep it.")
    seen = observed(accesses, "the accesses fit no regular grid", fields=fields)
    verdict = doubt_unknown(keep, seen)
    if not share:
        assert verdict == keep
        return
    assert (verdict.action, verdict.reason) == ("keep", "no-gain")
    unmeasured = doubt_unknown(msgspec.structs.replace(keep, reason="no-rule-applies"), seen)
    assert (unmeasured.action, unmeasured.reason) == ("undecided", "structure-unclear")
    assert "Not tried: any layout of" in verdict.text
    assert "`a0`" in verdict.text
    assert f"{share} of the accesses" in verdict.text
    assert doubt_unknown(keep, observed(accesses, None)) == keep
    change = Verdict("change", "c1", 2.0, "measured-gain", "Change it.")
    assert doubt_unknown(change, seen) == change


@pytest.mark.parametrize(("accesses", "share"), [((300, 700), "70%"), ((100, 12), "11%"), ((100, 4), ""), ((0, 0), "")])
def test_memory_that_the_call_allocates_itself_is_told_beside_a_keep(accesses: tuple[int, int], share: str) -> None:
    """edlib: layouts were made of the memory between the blocks, and the calls that used them died."""
    keep = Verdict("keep", None, None, "no-rule-applies", "Keep it.")
    seen = observed(accesses, None)
    assert seen.attribution is not None
    assert doubt_own(keep, seen) == keep
    there, own = seen.attribution.objects
    objects = (there, replace(own, kind="mapped", life="born"))
    seen = replace(seen, attribution=replace(seen.attribution, objects=objects), derived=seen.derived[:1])
    if not share:
        assert with_untried(keep, seen, ()).action == "keep"
        assert without_hope(seen, ()) is None
        return
    for told in (with_untried(keep, seen, ()), without_hope(seen, ())):
        assert told is not None
        assert (told.action, told.reason) == ("undecided", "own-memory")
        assert f"the memory that the call allocates itself, where {share} of the accesses to data go." in told.text
    other = (Candidate("c1", (), ("split",), ("split",)),)
    assert without_hope(seen, other) is None
    assert (without_hope(seen, other, loops=True) is not None) is (share == "70%")
    measured = msgspec.structs.replace(keep, reason="no-gain")
    assert with_untried(measured, seen, ()).action == "keep"
    change = Verdict("change", "c1", 2.0, "measured-gain", "Change it.")
    assert doubt_own(change, seen) == change


def test_of_many_places_a_few_may_be_new_in_the_call() -> None:
    """minisat: a read of hundreds of lists, of which five had grown in the calls, counted for each of these: of its hottest
    function "87 % of the accesses go to memory that the call allocates itself"."""
    seen = observed((700, 100), None)
    assert seen.attribution is not None
    lists = tuple(MemoryObject("heap", f"l{k}", 1 << 20 | k << 6, 64, life="born" if k < 5 else "whole") for k in range(100))
    touches = tuple(ObjectTouch(2 + k, None) for k in range(100))
    objects = (*seen.attribution.objects, *lists)
    attribution = replace(seen.attribution, objects=objects, touches=(touches, *seen.attribution.touches[1:]))
    assert own_part(replace(seen, attribution=attribution)) == pytest.approx(35 / 135)
    assert own_part(seen) == 0.0


def test_where_no_rule_applies_each_structure_says_why() -> None:
    keep = Verdict("keep", None, None, "no-rule-applies", "Keep it: no layout rule applies.")
    seen = observed((1000, 5), None)
    told = with_untried(keep, seen, ()).text
    assert told.startswith("Keep it: no layout rule applies. `a0`")
    assert "of the accesses): a plain array of one scalar" in told
    assert "`a1`" not in told  # less than a hundredth
    measured = Verdict("keep", None, None, "no-gain", "Keep it.")
    assert with_untried(measured, seen, ()) == measured


def test_another_start_of_plain_arrays_answers_no_doubt() -> None:
    """Records that nothing declares are as untried as before."""
    lines = Candidate("c1", (), (ALIGN,), (ALIGN,))
    kept = Verdict("keep", None, None, "no-gain", "Keep it: one was measured.", about="c1")
    seen = observed((1000, 5), None)
    told = with_untried(kept, seen, (lines,))
    assert (told.action, told.reason) == ("keep", "no-gain")
    assert "`a0` (100% of the accesses): a plain array of one scalar" in told.text
    records = replace(seen, derived=(replace(seen.derived[0], steps=3), *seen.derived[1:]))
    asked = with_untried(kept, records, (lines,))
    assert (asked.action, asked.reason) == ("undecided", "records-unclear")
    assert "no layout was measured but with another start. Not tried: records of 3" in asked.text
    other = Candidate("c2", (), ("soa",), ())
    assert with_untried(kept, records, (lines, other)).action == "keep"


def test_where_no_rule_applies_an_open_start_leaves_it_at_that() -> None:
    lines, seen = Candidate("c1", (), (ALIGN,), (ALIGN,)), observed((1000, 5), None)
    left = Verdict("undecided", None, None, "within-noise", "Undecided: it runs 0.9 to 1.2 times as fast.", about="c1")
    told = with_untried(left, seen, (lines,))
    assert (told.action, told.reason, told.about) == ("keep", "no-rule-applies", "c1")
    said = "Keep it: no layout rule applies to what the hotspot touches; it runs 0.9 to 1.2 times as fast. `a0` (100%"
    assert told.text.startswith(said)
    wrong = Verdict("undecided", None, None, "identity-not-verified", "Undecided: it differs.")
    assert with_untried(wrong, seen, (lines,)) == wrong
    other = Candidate("c2", (), ("soa",), ())
    assert with_untried(left, seen, (lines, other)) == left


def test_a_structure_to_which_rules_may_apply_is_named_where_they_gave_nothing() -> None:
    """argon2's blocks, numbers in three dimensions: no structure was named at all."""
    seen = observed((1000, 500), None)
    first, second = seen.derived
    grid = replace(first.structure, dims=(Dim(10, 80), Dim(10, 8)))
    seen = replace(seen, derived=(replace(first, structure=grid), second))
    keep = Verdict("keep", None, None, "no-rule-applies", "Keep it: no layout rule applies.")
    text = with_untried(keep, seen, ()).text
    assert "`a0` (67% of the accesses): the rules gave no other layout of it; `a1` (33%" in text


@pytest.mark.parametrize(
    ("accesses", "first_cache", "matters"), [((1000, 100), 512, True), ((1000, 100), 800, False), ((9, 1000), 512, False)]
)
def test_picked_elements_are_no_reason_where_a_first_cache_holds_all_or_few_accesses_go_there(
    accesses: tuple[int, int], first_cache: int, matters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layout_advise.machine.caches", lambda: {(1, "Data"): first_cache, (2, "Unified"): 1 << 20})
    seen = observed(accesses, None)
    picked = replace(seen.derived[0], term=parse("A_100"))
    seen = replace(seen, derived=(picked, seen.derived[1]), indexed=frozenset({"s0"}), used_part={"s0": 0.1})
    keep = Verdict("keep", None, None, "no-rule-applies", "Keep it: no layout rule applies.")
    told = with_untried(keep, seen, ())
    assert told.reason == ("not-all-tried" if matters else "no-rule-applies")
    assert ("storing the elements of a0 that the index picks out" in told.text) == matters


@pytest.mark.parametrize(("filled", "told"), [(0.75, "no-rule-applies"), (0.25, "not-all-tried")])
def test_elements_that_fill_their_lines_are_not_picked_out(
    filled: float, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """minimap2's rows in a block of 8 MB, of which a call uses 50 kB: its allocator gives parts of that block."""
    monkeypatch.setattr("layout_advise.machine.caches", lambda: {(1, "Data"): 512, (2, "Unified"): 1 << 20})
    seen = observed((1000, 100), None)
    picked = replace(seen.derived[0], term=parse("A_100"))
    seen = replace(seen, derived=(picked, seen.derived[1]), indexed=frozenset({"s0"}), used_part={"s0": 0.1})
    keep = Verdict("keep", None, None, "no-rule-applies", "Keep it: no layout rule applies.")
    assert with_untried(keep, replace(seen, filled={"s0": filled}), ()).reason == told


@pytest.mark.parametrize(("reason", "told"), [("no-rule-applies", "not-all-tried"), ("no-gain", "no-gain")])
def test_structures_whose_layouts_could_not_be_written_are_told(
    reason: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """metis: "no layout rule applies" to a heap of records with 32 % of the accesses, none of whose layouts could be."""
    monkeypatch.setattr("layout_advise.machine.caches", lambda: {(1, "Data"): 512})
    seen = observed((1000, 100), None)
    keep = Verdict("keep", None, None, reason, "Keep it.")
    verdict = with_untried(keep, seen, (), {"s0": "a pointer changes in the inner loop"})
    assert verdict.reason == told
    assert "Not tried: any layout of `a0` (91% of the accesses): a pointer changes in the inner loop." in verdict.text
    assert with_untried(keep, seen, (), {}).reason == reason


def test_nothing_is_timed_where_it_could_tell_nothing() -> None:
    unclear = observed((1000, 100), "the accesses fit no regular grid")
    verdict = without_hope(unclear, ())
    assert verdict is not None
    assert (verdict.action, verdict.reason) == ("undecided", "structure-unclear")
    assert without_hope(unclear, (Candidate("c1", (), (ALIGN,), (ALIGN,)),)) == verdict
    one = Candidate("c1", (), ("soa",), (), None, False, False, {})
    assert without_hope(unclear, (one,)) is None
    assert without_hope(observed((1000, 100), None), ()) is None
    assert without_hope(observed((4, 100), "the accesses fit no regular grid"), ()) is None


def others_that_use(*seen: Observation) -> Others:
    """Calls of other kinds; of these only what they touch counts."""
    unused: Any = None
    return Others(tuple(Other(unused, unused, one, unused) for one in seen))


def test_structures_that_only_other_kinds_use_are_told_beside_a_keep() -> None:
    keep = Verdict("keep", None, None, "no-gain", "Keep it.")
    seen = observed((10, 10), None)
    grid = Structure("s2", "grid", 12288, 1600, (Dim(100, 16),), (Field("f0", 0, 8), Field("f1", 8, 8)))
    theirs = replace(seen, derived=(*seen.derived, Derived(grid, None, 16, 0, False, None)))
    for same in (others_that_use(), others_that_use(seen)):
        assert with_untried_kinds(keep, seen, same) == keep
    assert with_untried_kinds(keep, theirs, others_that_use(theirs)) == keep
    doubted = with_untried_kinds(keep, seen, others_that_use(seen, theirs))
    assert doubted.action == "keep"
    assert "Not tried: any layout of grid, which only calls of another kind use." in doubted.text
    change = Verdict("change", "c1", 2.0, "measured-gain", "Change it.")
    assert with_untried_kinds(change, seen, others_that_use(theirs)) == change
