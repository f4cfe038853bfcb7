"""The first screen: one sentence, evidence in words, the change to paste, three things to know."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.reasons import Reason
from layout_advise.reports.model.candidate import BudgetTerm, CandidateReport, Conversion, Interval
from layout_advise.reports.model.contract import Check, Report
from layout_advise.reports.model.hotspot import BaselineReport, LoopAdvice, Verdict
from layout_advise.reports.pages import html, terminal
from layout_advise.reports.words import live_words
from layout_advise.reports.words.first_screen import MOST_NOTES, ApplyCommand, Mark, apply_command, first_screen, short
from layout_advise.reports.words.headline import MOST_WORDS, data_name, headline
from layout_advise.reports.words.hotspot_words import calls
from layout_advise.reports.words.offsets import line_use, offsets
from layout_advise.reports.words.reason_words import CHECK_EFFECTS, REASONS
from tests.support.sample_report import candidate, live, report

GAIN = Interval(3.61, 3.5, 3.7, 9)
WRITABLE = candidate(1, GAIN, arrays=(("x",),))


def told(verdict: Verdict, *made: CandidateReport) -> Report:
    """The sample with another verdict and candidates."""
    shown = report(verdict)
    candidates = made or shown.hotspots[0].candidates
    return msgspec.structs.replace(shown, hotspots=(msgspec.structs.replace(shown.hotspots[0], candidates=candidates),))


def test_times_that_say_nothing_are_told_without_a_layout() -> None:
    """``runs step 0.76–86.3× as fast`` was the first line of a run on a busy machine."""
    wide = Verdict(
        "undecided", None, None, "within-noise", "", interval=Interval(3.0, 0.76, 86.3, 3), about="c1", doubt="noise"
    )
    said = headline(told(wide).hotspots[0])
    assert said.startswith("Undecided: what was measured of step tells no layouts apart (0.76–86.3×)")
    narrow = Verdict(
        "undecided", None, None, "within-noise", "", interval=Interval(1.0, 0.9, 1.2, 3), about="c1", doubt="noise"
    )
    assert "SoA" in headline(told(narrow).hotspots[0])


def test_entries_of_a_function_that_calls_itself_are_not_told_as_calls_of_so_long() -> None:
    """``70 483 924 calls of 1.05 µs`` were said of a program that takes 2 s."""
    asked = told(Verdict("undecided", None, None, "recursive", "Undecided: it calls itself.")).hotspots[0]
    assert "times, by itself too" in calls(asked)
    assert "calls of" not in calls(asked)


def test_a_change_names_data_layout_gain_and_program() -> None:
    assert headline(report().hotspots[0]) == "Store `particle` as SoA of x: step 3.6× faster (3.5–3.7), the program 1.83×."
    wide = Verdict("change", "c1", 3.5, "measured-gain", "", interval=Interval(3.61, 3.5, 5.7, 9))
    assert "step at least 3.5× faster (3.5–5.7 with every doubt)" in headline(told(wide).hotspots[0])


def test_of_a_program_that_waits_only_its_cpu_time_gains() -> None:
    for how in ({"waits": 0.6}, {"processors": 1.9}):
        waiting = msgspec.structs.replace(report().hotspots[0], **how)
        assert headline(waiting).endswith("step 3.6× faster (3.5–3.7), the program's CPU time 1.83×.")
    shown = msgspec.structs.replace(report(), hotspots=(msgspec.structs.replace(report().hotspots[0], waits=0.6),))
    assert any("of samples, waits 60 % of its time" in mark.text for mark in first_screen(shown, shown.hotspots[0]).evidence)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"families": ("aosoa",), "block": 8}, "as AoSoA×8 of x"),
        ({"families": ("split", "compact"), "arrays": (("a", "b"), ("c",))}, "as 2 arrays: a, b | c"),
        ({"families": ("permute",)}, "with its dimensions in another order"),
        ({"families": ("pad",)}, "with padded elements"),
        ({"families": ("soa", "pad")}, "as SoA of x, padded elements"),
        ({"families": ("merge",)}, "together, as one array of structures"),
        ({"families": ("split",), "classes": 2}, "by class, the used one of each 2 apart"),
        ({"arrays": tuple((f"field_{k}",) for k in range(40))}, "as SoA of 40 fields"),
    ],
)
def test_layouts_in_few_words(changes: dict[str, object], words: str) -> None:
    verdict = Verdict("change", "c1", 3.61, "measured-gain", "")
    assert f"Store `particle` {words}: step" in headline(told(verdict, candidate(1, GAIN, **changes)).hotspots[0])


def test_what_can_be_written_into_source_names_the_command() -> None:
    (hotspot,) = told(Verdict("change", "c1", 3.61, "measured-gain", ""), WRITABLE).hotspots
    offered = apply_command(hotspot, "my run.layout")
    assert offered == ApplyCommand("layout-advise apply 'my run.layout' -o 'my run.patch' --build make", "it")
    page = html.render(told(hotspot.verdict, WRITABLE), "/project/app.layout")
    whole = "<code>layout-advise apply /project/app.layout -o /project/app.patch --build make</code></p>"
    assert f"To write it into the source, build it and time it: {whole}" in page
    page = html.render(told(hotspot.verdict, WRITABLE))
    assert "layout-advise apply RUN -o RUN.patch --build make</code> (RUN: the directory of a run with its paths" in page
    assert apply_command(msgspec.structs.replace(hotspot, file="main.cpp")) is not None
    assert apply_command(msgspec.structs.replace(hotspot, file="main.f90")) is None
    keep = report(Verdict("keep", None, None, "no-gain", "Keep it."))
    assert apply_command(keep.hotspots[0]) is None
    assert "layout-advise apply" not in html.render(keep)


BLOCKS = "its blocks are of one member each"


def test_what_cannot_be_written_offers_the_best_that_can() -> None:
    verdict = Verdict("change", "c1", 3.61, "measured-gain", "")
    blocks = msgspec.structs.replace(WRITABLE, block=8, families=("aosoa",))
    other = msgspec.structs.replace(WRITABLE, id="c2", speedup=Interval(3.0, 2.9, 3.1, 9))
    (hotspot,) = told(verdict, blocks, other).hotspots
    command = "layout-advise apply RUN --candidate c2 -o RUN.patch --build make"
    assert apply_command(hotspot) == ApplyCommand(command, f"c2 (SoA, compact), 3.0×, not c1, as {BLOCKS}")
    assert apply_command(told(verdict, blocks).hotspots[0]) is None
    unrolled = msgspec.structs.replace(WRITABLE, id="c2-simd", variant="simd")
    simd = told(msgspec.structs.replace(verdict, candidate="c2-simd"), unrolled, other).hotspots[0]
    assert apply_command(simd) == ApplyCommand(command, "it (the loop as it is, not for SIMD; 3.0×)")
    lucky = msgspec.structs.replace(other, speedup=Interval(5.0, 4.9, 5.1, 9))
    assert apply_command(told(verdict, blocks, lucky).hotspots[0]) == ApplyCommand(
        command, f"c2 (SoA, compact), not c1, as {BLOCKS}"
    )


def test_keep_tells_the_best_that_others_reached() -> None:
    verdict = Verdict("keep", None, None, "no-gain", "Keep it.", interval=Interval(0.99, 0.97, 1.03), about="c1")
    text = headline(told(verdict, candidate(1, GAIN), candidate(3, GAIN)).hotspots[0])
    assert text == "Keep `particle` as it is: the best of 2 other layouts runs step at most 1.03× as fast."
    none = Verdict("keep", None, None, "no-rule-applies", "Keep it: no layout rule applies.")
    assert headline(told(none).hotspots[0]) == "Keep the layout: no layout rule applies to what step touches."


def test_of_several_structures_with_long_names_the_first_is_named() -> None:
    """``runs prod_xA2 at most 0.94× as …`` was told behind two names of six words each."""
    verdict = Verdict("keep", None, None, "no-gain", "Keep it.", interval=Interval(0.93, 0.92, 0.94), about="c1")
    for name, said in (("block 1 of the work", "`block 1 of the work` and 1 more"), ("a b " * 6, "2 structures")):
        made = candidate(1, Interval(0.96, 0.94, 0.96, 5), structures=("s0", "s1"))
        (hotspot,) = told(verdict, made, candidate(3, GAIN)).hotspots
        blocks = [msgspec.structs.replace(hotspot.structures[0], id=f"s{k}", type=None, name=name) for k in range(2)]
        blocks[1] = msgspec.structs.replace(blocks[1], name=f"{name}2")
        hotspot = msgspec.structs.replace(hotspot, structures=tuple(blocks))
        assert headline(hotspot) == f"Keep {said} as it is: the best of 2 other layouts runs step at most 0.94× as fast."
    notes = " ".join(first_screen(told(verdict, made), hotspot).notes)
    assert "0.96× (0.94–0.96) over the original; over the fastest build of the unchanged layout it is at most 0.94×" in notes


def test_undecided_tells_the_interval_the_doubt_and_what_narrows_it() -> None:
    doubt = BudgetTerm("processes", 0.9, 1.6, "bootstrap over 5 processes")
    made = candidate(1, Interval(1.2, 0.9, 1.6, 5), error_budget=(doubt,))
    open_to = Interval(1.2, 0.9, 1.6)
    verdict = Verdict(
        "undecided", None, None, "within-noise", "Undecided: so.", interval=open_to, about="c1", doubt="processes"
    )
    screen = first_screen(told(verdict, made), told(verdict, made).hotspots[0])
    assert screen.headline == (
        "Undecided: `particle` as SoA of x runs step 0.90–1.60× as fast; left open by run-to-run noise."
    )
    assert screen.notes[:2] == (
        "Run-to-run noise leaves 0.90–1.60×: bootstrap over 5 processes.",
        "A quieter machine or more processes (--restores N) narrow it.",
    )


def test_advice_about_the_loop_comes_first() -> None:
    advice = LoopAdvice("identity-restrict", Interval(1.9, 1.8, 2.0, 9), "declare its pointers `restrict`")
    for action, words in (("keep", "Keep the layout; change step:"), ("undecided", "Layout undecided; change step:")):
        verdict = Verdict(action, None, None, "no-gain", "So.", loop=advice)  # type: ignore[arg-type]
        assert headline(told(verdict).hotspots[0]).startswith(f"{words} declare its pointers `restrict`, 1.90× faster")


def test_what_the_program_can_gain_at_most_is_said_of_it() -> None:
    verdict = Verdict("keep", None, None, "no-program-gain", "Keep it: so.", program=Interval(1.0, 1.0, 1.04))
    words = headline(told(verdict).hotspots[0])
    assert words == "Keep the layouts: by those measured the program runs at most 1.04× as fast."


def test_every_reason_and_check_has_words() -> None:
    """Reasons of an answer have a sentence of their own."""
    own = {Reason.MEASURED_GAIN, Reason.NO_GAIN, Reason.NO_RULE_APPLIES, Reason.UNDECIDED_YET}
    own |= {Reason.WITHIN_NOISE, Reason.MOCKUP_FORM, Reason.COMPILER_DEPENDENT}  # by the doubt that leaves it open
    own |= {Reason.PLACEMENT_DEPENDENT, Reason.SCALAR_MOCKUPS}
    own |= {Reason.ADVISED_LAYOUT}  # by the run before
    own |= {Reason.NO_PROGRAM_GAIN}  # by all regions
    assert {str(reason) for reason in Reason} - set(REASONS) == {str(reason) for reason in own}
    for reason in REASONS:
        words = headline(told(Verdict("undecided", None, None, reason, "Undecided: long.")).hotspots[0])
        assert words.startswith("Undecided for step: ")
        named = "Undecided for step: `vpshufb` at main.c:71 could not be turned into C."
        assert (words == named) == (reason == "not-lifted")
    assert set(CHECK_EFFECTS) >= {"noise-floor", "in-situ", "calls-verified", "wrong-map"}


names = st.text("abcxyz_ <>:,*", min_size=1, max_size=60)


@given(fields=st.lists(names, min_size=1, max_size=30), symbol=names, width=st.integers(80, 160))
def test_the_first_screen_is_short_whatever_names_are(fields: list[str], symbol: str, width: int) -> None:
    change = "".join(f" {'    ' if k % 3 else ''}double {name};\n+x\n" for k, name in enumerate(fields))
    made = candidate(1, GAIN, arrays=tuple((name,) for name in fields), change=change)
    shown = told(Verdict("change", "c1", 3.61, "measured-gain", "So."), made)
    hotspot = msgspec.structs.replace(shown.hotspots[0], name=symbol)
    assert len(headline(hotspot).split()) <= MOST_WORDS + 1  # an ellipsis
    shown = msgspec.structs.replace(shown, hotspots=(hotspot,))
    assert len(short(first_screen(shown, hotspot))) <= MOST_NOTES
    lines = terminal.render(shown, width=width).splitlines()
    first = lines[: lines.index("")]
    assert sum(-(-len(line) // width) for line in first) <= terminal.FIRST_LINES
    assert any(line.startswith("•") for line in first)


def test_long_changes_lose_first_what_stays() -> None:
    lines = [" struct a {", *["     int x;"] * 9, "-    int y;", " };", *["+int *z;"] * 9]
    assert terminal.shortened(lines, 40) == lines
    cut = terminal.shortened(lines, 15)
    assert cut[:3] == [" struct a {", "     /* ... 9 lines that stay ... */", "-    int y;"]
    assert len(terminal.shortened(lines, 8)) == 8
    assert "more lines" in terminal.shortened(lines, 8)[-1]


def test_conversion_and_ties_are_told() -> None:
    around = Interval(0.3, 0.29, 0.31, 9)
    advised = candidate(1, GAIN, conversion=Conversion(1.5, 0.5, 5, around=around), variant="restrict")
    verdict = Verdict("change", "c1", 3.61, "measured-gain", "So.", use="permanent", peers=("c2",))
    shown = told(verdict, advised, candidate(2, GAIN))
    notes = first_screen(shown, shown.hotspots[0]).notes
    assert notes[0] == "Declare the new arrays `restrict`: the gain was measured so."
    assert "pays off after 5 consecutive calls. Converting around every call is 3.3× slower." in notes[1]
    assert "c2 (SoA, compact) is statistically tied with it." in notes
    soon = told(verdict, msgspec.structs.replace(advised, conversion=Conversion(1.5, 0.5, 1, around=around)))
    assert "Change it permanently. Converting around" in first_screen(soon, soon.hotspots[0]).notes[1]


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ("restrict", "Declare the new arrays `restrict`"),
        ("simd", "write the loop for SIMD (`#pragma omp simd`"),
        ("lanes", "the loop over each block's elements inside"),
    ],
)
def test_what_the_loop_has_to_be_written_like_is_told(variant: str, said: str) -> None:
    advised = msgspec.structs.replace(candidate(1, GAIN), variant=variant)
    shown = told(Verdict("change", "c1", 3.61, "measured-gain", "So.", use="permanent"), advised)
    assert said in first_screen(shown, shown.hotspots[0]).notes[0]


def test_of_tied_layouts_the_fastest_is_named() -> None:
    slow, fast = candidate(2, Interval(3.4, 3.3, 3.5, 9)), candidate(3, Interval(3.7, 3.6, 3.8, 9), families=("pad",))
    verdict = Verdict("change", "c1", 3.61, "measured-gain", "So.", peers=("c2", "c3"))
    shown = told(verdict, candidate(1, GAIN), slow, fast)
    names = next(note for note in first_screen(shown, shown.hotspots[0]).notes if "tied" in note)
    assert names.startswith("c3 (padded")
    harder = told(msgspec.structs.replace(verdict, faster=("c3",)), candidate(1, GAIN), slow, fast)
    notes = first_screen(harder, harder.hotspots[0]).notes
    assert "c3 (padded) is faster (3.7×), but harder to write." in notes
    assert "c2 (SoA, compact) is statistically tied with it." in notes


def test_an_interval_with_more_than_processes_in_it_says_so() -> None:
    budget = (BudgetTerm("processes", 3.5, 3.7, "so"), BudgetTerm("form", 3.4, 4.1, "so"))
    made = candidate(1, GAIN, error_budget=budget)
    verdict = Verdict("change", "c1", 3.61, "measured-gain", "So.", interval=Interval(3.61, 3.4, 4.1, 9))
    shown = told(verdict, made)
    assert "3.6× faster (3.4–4.1 with every doubt)" in headline(shown.hotspots[0])
    words = "The interval in the headline holds every doubt measured of c1, from 3.40× to 4.10× ("
    assert any(note.startswith(words) for note in first_screen(shown, shown.hotspots[0]).notes)
    assert words in html.render(shown)
    over = BudgetTerm("rebuild", 3.6, 4.1, "so")
    rebuilt = msgspec.structs.replace(made, error_budget=(budget[0], over), over_identity=Interval(3.8, 3.6, 4.1, 9))
    lower = msgspec.structs.replace(verdict, interval=Interval(3.61, 3.5, 4.1, 9))
    ends = "from 3.50× (run-to-run noise) to 4.10× (the comparison with the rebuilt original)."
    assert ends in html.render(told(lower, rebuilt))
    other = msgspec.structs.replace(verdict, interval=Interval(3.61, 2.0, 9.0, 9))
    assert "The interval in the headline" not in html.render(told(other, rebuilt))
    plain = told(msgspec.structs.replace(verdict, interval=GAIN), made)
    assert "faster (3.5–3.7)" in headline(plain.hotspots[0])
    assert words not in html.render(plain)


def test_offsets_as_pahole_prints_them() -> None:
    structure = report().hotspots[0].structures[0]
    text = offsets(structure)
    assert "    double x;" in text
    assert "/*     8     8    1000    1000 */" in text
    assert "/* XXX 64 bytes padding */" in text
    assert text.endswith("};  /* size: 80, cachelines: 2, members: 2, holes: 0 bytes */")
    assert line_use(structure, 1250) == pytest.approx(0.2)
    assert line_use(structure, None) is None


def test_failed_checks_say_whether_they_matter() -> None:
    shown = report()
    assert (
        first_screen(shown, shown.hotspots[0]).evidence[-1].text
        == "the interval holds the program's own times (1 of 2 checks)"
    )
    rejected = told(Verdict("keep", None, None, "no-rule-applies", "Keep it: so."), candidate(2, None))
    (hotspot,) = rejected.hotspots
    assert first_screen(rejected, hotspot).evidence[-1].text.endswith("failed, no layout was timed, so it does not matter")
    assert "Far off: no layout was timed, so it does not matter." in terminal.render(rejected)
    other = msgspec.structs.replace(shown.quality, checks=(Check("deterministic", False, 0.0, "the runs differ"),))
    matters = msgspec.structs.replace(shown, quality=other)
    assert first_screen(matters, matters.hotspots[0]).evidence[-1] == Mark("!", "1 of 1 checks failed", False)
    assert (
        "The runs differ: runs differ: fix the seed, or measure again." in first_screen(matters, matters.hotspots[0]).notes
    )


def test_where_no_rule_applies_the_structures_say_why() -> None:
    structure = report().hotspots[0].structures[0]
    plain = msgspec.structs.replace(structure, note="a plain array", name="a", fields=())
    small = msgspec.structs.replace(structure, note="a single element", bytes=80)
    shown = told(Verdict("keep", None, None, "no-rule-applies", "Keep it: so."), candidate(2, None))
    (hotspot,) = shown.hotspots
    notes = first_screen(shown, msgspec.structs.replace(hotspot, structures=(small, plain))).notes
    assert notes[:2] == ("`a` (78.1 KiB): a plain array.", "`particle` (80 B): a single element.")


def test_a_hot_part_is_called_so() -> None:
    made = candidate(1, GAIN, families=("split", "compact"), arrays=(("vx", "m"),))
    shown = told(Verdict("change", "c1", 3.61, "measured-gain", ""), made)
    assert headline(shown.hotspots[0]).startswith("Store `particle` in two parts: vx, m | the rest: step 3.6× faster")


@pytest.mark.parametrize(
    ("kind", "name"),
    [("struct particle", "particle"), ("particle", "particle"), ("double[8]", "particles"), ("particle[2]", "particles")],
)
def test_rows_that_stand_for_records_have_the_name_of_the_array(kind: str, name: str) -> None:
    """No source has a type of that name: ``double datarr[1001][1001][4][2]``."""
    (structure,) = report().hotspots[0].structures
    assert data_name(msgspec.structs.replace(structure, type=kind)) == f"`{name}`"


def test_after_a_change_its_gain_is_told_first() -> None:
    """Whatever the changed program's own run comes to."""
    said = "This is the layout advised in a.layout (c5: SoA). step runs 3.70 times as fast as there (3.40 to 4.20)."
    known = BaselineReport("a.layout", "c5", "SoA", True, Interval(3.7, 3.4, 4.2, 9), f"{said} No other gains more.")
    doubt = BudgetTerm("processes", 0.9, 1.6, "bootstrap over 5 processes")
    made = candidate(1, Interval(1.2, 0.9, 1.6, 5), error_budget=(doubt,))
    text, wide = f"So it is. {known.text}", Interval(1.2, 0.9, 1.6)
    undecided = Verdict("undecided", None, None, "within-noise", text, interval=wide, about="c1", doubt="processes")
    for verdict in (undecided, msgspec.structs.replace(undecided, action="keep", reason="no-gain")):
        whole = told(verdict, made)
        (hotspot,) = whole.hotspots
        notes = first_screen(whole, msgspec.structs.replace(hotspot, baseline=known)).notes
        assert notes[:2] == (said, "No other gains more.")
        assert len(set(notes)) == len(notes) > 2


@pytest.mark.parametrize(("tried", "what"), [(False, "No trial"), (True, "Another layout was not tried")])
def test_a_layout_without_a_trial_beside_one_that_had_one(tried: bool, what: str) -> None:
    (hotspot,) = report(Verdict("keep", None, None, "no-gain", "Keep it.")).hotspots
    rows = tuple(msgspec.structs.replace(c, live=live() if tried and c.id == "c1" else None) for c in hotspot.candidates)
    said = live_words.lines(
        msgspec.structs.replace(hotspot, candidates=rows, no_live="the time for trials went into others")
    )
    assert said[-1] == f"{what} in the running program: the time for trials went into others."
    assert len(said) == 1 + tried


def test_calls_that_ran_in_the_program_without_times_are_told_without() -> None:
    why = "a call takes 30 ns, too short"
    untimed = msgspec.structs.replace(live(), speedup=None, ns_original=None, ns_layout=None, timed=0, untimed=why)
    row = msgspec.structs.replace(candidate(1, None), live=untimed)
    assert live_words.tried(row) == "In the running program: 330 calls ran so, the same output."
    silent = msgspec.structs.replace(row, live=msgspec.structs.replace(untimed, output_bytes=0))
    assert live_words.tried(silent).endswith("the same exit status; it prints nothing that could be compared.")
    text = live_words.details(row)
    assert f"330 calls ran so in one run (not timed: {why}), 30 others went through the original" in text
    assert "exit status 0 and 1 200 bytes of output as ordinarily" in text
    assert "conversions and all that the trial itself does at each call included." in text
