"""The report: the contract, the terminal, the page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from layout_advise.errors import RunDirError
from layout_advise.reports.model import contract
from layout_advise.reports.model.candidate import Ablation, CandidateReport, Elsewhere, Interval, PartReport, RuleStep
from layout_advise.reports.model.hotspot import CompiledBy, Verdict
from layout_advise.reports.model.structure import FieldUse, Placement, UserReport
from layout_advise.reports.model.threads import ByThreads, ThreadCount, Time
from layout_advise.reports.pages import html, tables, terminal
from layout_advise.reports.words import hotspot_words, layout_words, quantities, structure_words
from tests.support.paths import ROOT
from tests.support.sample_report import candidate, report

SCHEMA_FILE = ROOT / "docs" / "report.schema.json"


def test_json_round_trip_and_schema() -> None:
    data = contract.encode(report())
    assert contract.decode(data) == report()
    jsonschema.validate(json.loads(data), contract.schema())


def test_who_proposed_the_layouts_is_told_where_it_is_not_the_rules_alone() -> None:
    whole = report()
    (one,) = whole.hotspots
    best, other = candidate(1, Interval(3.6, 3.5, 3.7, 9)), candidate(2, Interval(1.1, 1.0, 1.2, 9))
    rows = (
        msgspec.structs.replace(best, proposers=("rules", "field graph")),
        msgspec.structs.replace(other, proposers=("affinity",)),
    )
    told = msgspec.structs.replace(one, candidates=rows)
    text = "proposed: c1 by rules, field graph; layouts by rules 1, field graph 1, affinity 1"
    assert hotspot_words.proposers(told) == text
    page = msgspec.structs.replace(whole, hotspots=(told,))
    assert text in terminal.render(page)
    assert "proposed by affinity" in html.render(page)
    assert hotspot_words.proposers(one) == ""


def test_the_committed_schema_is_the_code_s() -> None:
    assert json.loads(SCHEMA_FILE.read_text()) == json.loads(json.dumps(contract.schema()))


def test_each_property_of_the_schema_is_described() -> None:
    """By a docstring of its own, or by what that of its class says where it names it."""
    told = {
        (name, key): value.get("description", "")
        for name, part in contract.schema()["$defs"].items()
        for key, value in part.get("properties", {}).items()
    }
    assert [place for place, text in told.items() if len(text) < len("An id.")] == []
    assert told["Machine", "l2_bytes"] == "The second cache of one core, in bytes."
    assert told["Quality", "score"] == "`score` is the share of the checks that passed."
    assert len(told) > 300


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"{", "damaged"),
        (b'{"schema": "layout-advise.report/9"}', "report/9"),
        (b"[]", "None"),
        (msgspec.json.encode({"schema": contract.SCHEMA}), "damaged"),
    ],
)
def test_foreign_and_damaged_reports_are_refused_by_name(data: bytes, word: str) -> None:
    with pytest.raises(RunDirError, match=word):
        contract.decode(data)


def test_terminal_begins_with_the_verdict() -> None:
    text = terminal.render(report())
    first = text.splitlines()[0]
    assert first == "Store `particle` as SoA of x: step 3.6× faster (3.5–3.7), the program 1.83×."
    assert text.index("→ c1") < text.index("  c2")
    assert "3.61× [3.50, 3.70]" in text
    assert "not lifted: vpshufb xmm0, xmm1 at main.c:71: unknown shuffle" in text
    assert "\x1b[" not in text
    assert "\x1b[" in terminal.render(report(), colour=True)


def test_a_call_chosen_by_its_time_does_not_pass_for_all() -> None:
    shown = report()
    (hotspot,) = shown.hotspots
    long = msgspec.structs.replace(shown, hotspots=(msgspec.structs.replace(hotspot, alike=7),))
    assert "most of them short, of which one of" in terminal.render(long)
    assert "most calls are short; the one that stands for the long ones takes" in html.render(long)
    assert "most of them short" not in terminal.render(shown)


def test_regions_without_an_answer_are_told() -> None:
    over = contract.PassedOver("pop", 0.17, "not-lifted", "Undecided: the hotspot could not be turned into C.")
    shown = msgspec.structs.replace(report(), passed_over=(over,))
    words = "no answer from pop (17% of the samples): the hotspot could not be turned into C."
    assert words in terminal.render(shown)
    assert words in html.render(shown)
    assert contract.decode(contract.encode(shown)) == shown
    assert "Looked at before" not in html.render(report())


@pytest.mark.parametrize(("gain", "told"), [(3.61, False), (3.5, True)])
def test_a_claim_below_the_median_is_explained(gain: float, told: bool) -> None:
    shown = report(Verdict("change", "c1", gain, "measured-gain", "Change it: c1 is at least 3.5 times as fast."))
    words = "the interval of c1 is wide: what is claimed is its lower end, 3.50×, not its median"
    assert (words in terminal.render(shown)) is told
    assert (words[1:] in html.render(shown)) is told
    assert not hotspot_words.claimed(report(Verdict("keep", None, None, "no-gain", "Keep it.")).hotspots[0])


def test_layouts_timed_at_several_addresses_are_told_of() -> None:
    whole = report()
    assert hotspot_words.placed(whole.hotspots[0]) == ""
    spot = whole.hotspots[0]
    spot = msgspec.structs.replace(spot, candidates=tuple(msgspec.structs.replace(c, places=4) for c in spot.candidates))
    whole = msgspec.structs.replace(whole, hotspots=(spot,))
    assert "their code at 4 addresses" in hotspot_words.placed(spot)
    assert "with their code at 4 addresses" in " ".join(terminal.render(whole).split())
    assert "Layouts were timed with their code at 4 addresses" in html.render(whole)


def test_layout_and_simd_are_shown_apart() -> None:
    sample = report()
    values = [Interval(v, v - 0.01, v + 0.01, 5) for v in (0.25, 0.5, 1.25, 3.75)]
    hotspot = msgspec.structs.replace(sample.hotspots[0], ablation=Ablation("c1", *values))
    shown = msgspec.structs.replace(sample, hotspots=(hotspot,))
    lines = terminal.render(shown).splitlines()
    at = next(k for k, line in enumerate(lines) if "without SIMD" in line)
    assert lines[at + 1].split() == ["as", "it", "is", "0.25×", "[0.24,", "0.26]", "1.25×", "[1.24,", "1.26]"]
    assert lines[at + 2].split()[-6:] == ["0.50×", "[0.49,", "0.51]", "3.75×", "[3.74,", "3.76]"]
    assert "c1 SoA" in lines[at + 2]
    page = html.render(shown)
    assert "Layout and SIMD apart" in page
    assert "3.75× [3.74, 3.76]" in page
    assert "Layout and SIMD apart" not in html.render(sample)


def test_loop_layout_and_simd_are_factors_of_the_gain() -> None:
    """Their product is the gain of both; intervals are those timed, else what any two times leave."""
    sample = report()
    neither, layout, simd, both = (Interval(v, 0.9 * v, 1.1 * v, 5) for v in (0.5, 1.5, 0.8, 3.6))
    timed = Ablation("c1", neither, layout, simd, both, Interval(3.1, 2.9, 3.2, 5), Interval(2.5, 2.45, 2.6, 5))
    hotspot = msgspec.structs.replace(sample.hotspots[0], ablation=timed)
    parts = dict(tables.factors(hotspot))
    assert [round(part.median, 9) for part in parts.values()] == [0.5, 3.0, 2.4]
    assert (parts["layout"].lo, parts["layout"].hi) == (2.9, 3.2)
    assert (round(parts["SIMD"].lo, 9), parts["SIMD"].hi) == (2.4, 2.6)  # holds the quotient
    line = "3.60× = 0.50 loop [0.45, 0.55] × 3.00 layout [2.90, 3.20] × 2.40 SIMD [2.40, 2.60]"
    shown = msgspec.structs.replace(sample, hotspots=(hotspot,))
    assert line in html.render(shown)
    assert line in " ".join(terminal.render(shown, width=200).split())
    old = msgspec.structs.replace(hotspot, ablation=Ablation("c1", neither, layout, simd, both))
    part = dict(tables.factors(old))["layout"]
    assert (round(part.lo, 6), round(part.hi, 6)) == (round(1.35 / 0.55, 6), round(1.65 / 0.45, 6))
    assert tables.factors(msgspec.structs.replace(hotspot, ablation=Ablation("c1", None, layout, simd, both))) == []
    assert tables.factors_line(sample.hotspots[0]) == ""


def test_plain_c_and_vector_types_are_told_apart() -> None:
    blocks = {"families": ("aosoa",), "block": 8}
    gains = {"c1": ("plain", 1.0), "c1-lanes": ("lanes", 2.9), "c1-simd": ("simd", 6.5)}
    made = [candidate(1, Interval(g, g - 0.1, g + 0.1, 5), id=n, variant=v, **blocks) for n, (v, g) in gains.items()]
    gain = Interval(3.0, 2.9, 3.1, 5)
    made.append(candidate(2, gain, id="c2-simd", variant="simd"))
    for both in (True, False):
        sample = with_candidates(tuple(made if both else [made[0], *made[2:]]))
        hotspot = msgspec.structs.replace(sample.hotspots[0], ablation=Ablation("c2-simd", gain, gain, gain, gain))
        rows = [(name.removeprefix("c1 AoSoA×8 "), value) for name, _, value in tables.ablation(hotspot)[2:]]
        plain, vectors = "in plain C (lanes)", "in vector types (simd)"
        told = [(plain, "2.90× [2.80, 3.00]"), (vectors, "6.50× [6.40, 6.60]")] if both else []
        assert rows == told
        page = html.render(msgspec.structs.replace(sample, hotspots=(hotspot,)))
        assert (f"c1 AoSoA×8 {plain}" in page) is both


def test_the_page_is_one_file_without_urls_and_escapes_what_the_program_says() -> None:
    page = html.render(report())
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert "url(" not in page.replace("url(#", "")
    assert "&lt;/code&gt;" in page
    assert "v&lt;x&gt;" in page
    assert "struct &lt;new&gt;" in re.sub("<[^>]+>", "", page)
    assert "<new>" not in page
    assert "     double v&lt;x&gt;;" in page
    assert "<svg" in page


def test_the_page_says_what_is_not_advised() -> None:
    page = html.render(report(Verdict("keep", None, None, "no-gain", "Keep it.")))
    assert "not advised" in page


def many(count: int, **changes: object) -> contract.Report:
    """The sample with ``count`` layouts, each measured in two variants."""
    made = []
    for number in range(1, count + 1):
        middle = 4 - number / 100
        made.append(candidate(number, Interval(middle, middle - 0.1, middle + 0.1, 9), **changes))
        faster = Interval(middle + 0.001, middle - 0.1, middle + 0.1, 9)
        made.append(candidate(number, faster, **{"id": f"c{number}-restrict", "variant": "restrict", **changes}))
    return with_candidates(tuple(made))


def with_candidates(made: tuple[CandidateReport, ...]) -> contract.Report:
    """The sample with other candidates."""
    sample = report()
    hotspot = msgspec.structs.replace(sample.hotspots[0], candidates=made)
    return msgspec.structs.replace(sample, hotspots=(hotspot,))


@pytest.mark.parametrize("width", [80, 110, 140])
def test_the_terminal_report_as_it_is_printed(width: int, snapshot: SnapshotAssertion) -> None:
    assert terminal.render(report(), width=width) == snapshot


def test_the_verbose_report_as_it_is_printed(snapshot: SnapshotAssertion) -> None:
    assert terminal.render(report(), verbose=True) == snapshot


def test_variants_are_folded_and_the_table_ends_after_twelve_rows() -> None:
    text = terminal.render(many(15))
    rows = [line for line in text.splitlines() if re.match(r"[→ ] c\d", line)]
    assert len(rows) == terminal.MOST_ROWS
    assert all(" restrict " in row for row in rows if "→" not in row)
    assert "-restrict" not in text
    assert "3 more in report.json" in text
    assert sum(line.startswith("  c") for line in terminal.render(many(15), verbose=True).splitlines()) == 14


@given(
    fields=st.lists(st.text("abcxyz_[]", min_size=1, max_size=30), min_size=1, max_size=9, unique=True),
    median=st.floats(0.01, 9999),
    width=st.integers(80, 160),
)
def test_no_number_is_ever_cut_or_wrapped(fields: list[str], median: float, width: int) -> None:
    speedup = Interval(median, median * 0.9, median * 1.1, 9)
    parts = tuple(PartReport("s0", (name,), 8, "A_1000") for name in fields)
    made = candidate(1, speedup, families=("split", "compact"), parts=parts)
    text = terminal.render(with_candidates((made,)), width=width)
    row = next(line for line in text.splitlines() if line.startswith("→ c1"))
    assert quantities.interval(speedup) in row
    assert len(row) <= width
    table = text[text.index("      as it is") : text.index("  speedup of the hotspot over the original")]
    assert "…" not in table
    assert all(len(line) <= width for line in table.splitlines())


def test_variants_with_the_same_machine_code_are_one() -> None:
    gain, less = Interval(2.0, 1.9, 2.1, 9), Interval(1.5, 1.4, 1.6, 9)
    variants = (
        candidate(4, less),
        candidate(4, gain, id="c4-restrict", variant="restrict"),
        candidate(4, gain, id="c4-simd", variant="simd", same_code_as="c4-restrict"),
    )
    sample = report()
    (hotspot,) = sample.hotspots
    folded = msgspec.structs.replace(hotspot, candidates=variants)
    (layout,) = tables.layouts(folded)
    assert (layout.best.id, layout.same) == ("c4-restrict", ("simd",))
    assert [(other.id, same) for other, same in layout.others] == [("c4", ())]
    page = html.render(msgspec.structs.replace(sample, hotspots=(folded,)))
    assert "simd: the same machine code" in page
    assert "plain: 1.50× [1.40, 1.60]" in page


def test_the_page_stays_small_whatever_the_mock_ups_are() -> None:
    page = html.render(many(60, source="if (a < b && c > d) {}\n" * 20_000, layout={"s0": "A_2 ⊗ " * 5000 + "A_3"}))
    assert len(page.encode()) < 2_000_000
    small = html.render(many(60))
    assert small.count("<details><summary>c") == html.MOST_SOURCES - 1  # the first one stands beside the original


@pytest.mark.slow
def test_a_page_of_many_structures_and_layouts_stays_one_table() -> None:
    sample = many(2_000, source="x[i] = y[j];\n" * 300)
    structure = sample.hotspots[0].structures[0]
    shown = tuple(msgspec.structs.replace(structure, id=f"s{k}", drawing="<svg></svg>" * 2000) for k in range(200))
    hotspot = msgspec.structs.replace(sample.hotspots[0], structures=shown)
    page = html.render(msgspec.structs.replace(sample, hotspots=(hotspot,)))
    assert len(page.encode()) < 2_000_000
    assert len(re.findall(r'<td data-value="\d+">c\d+</td>', page)) == 2_000
    few = many(20, source="x[i] = y[j];\n" * 60)
    assert len(html.render(msgspec.structs.replace(few, hotspots=few.hotspots * 50)).encode()) < 2_000_000


def test_what_the_verdict_says_is_escaped_and_names_become_code() -> None:
    page = html.render(report(Verdict("keep", None, None, "no-gain", "Keep `p<1>` <b>")))
    assert "Keep <code>p&lt;1&gt;</code> &lt;b&gt;" in page


@pytest.mark.parametrize(
    ("kinds", "block", "groups", "unused", "text"),
    [
        (("soa", "compact"), None, [("vx", "m", "P")], True, "as a structure of arrays of the 3 used fields (vx, m, P)"),
        (("aosoa",), 8, [("r", "g")], False, "as an array of blocks of 8 elements (AoSoA) of its fields (r, g)"),
        (("split",), None, [("a", "b"), ("c",)], False, "as 2 arrays of structures: (a, b), (c)"),
        (("split", "compact"), None, [("a",)], True, "as an array of the only used field, a, and the rest elsewhere"),
        (("pad",), None, [("a", "b")], False, "as an array of structures with padding"),
    ],
)
def test_transformations_in_words(
    kinds: tuple[str, ...], block: int | None, groups: list[tuple[str, ...]], unused: bool, text: str
) -> None:
    assert layout_words.transformation(kinds, block, groups, unused) == text


def test_blocks_of_several_lengths_in_words() -> None:
    """A block length for each cluster: the longest alone would say the same of two layouts."""
    kinds, groups, lengths = ("aosoa", "split"), (("x", "y"), ("z", "m"), ("id",)), (128, 16, 0)
    text = "as 3 arrays, in blocks (AoSoA): (x, y) of 128 elements, (z, m) of 16 elements, (id) in none"
    assert layout_words.transformation(kinds, 128, groups, False, None, lengths) == text
    one = msgspec.structs.replace(candidate(1, None), families=kinds, block=128, arrays=groups)
    assert layout_words.families(one) == "AoSoA×128, split: x y | z m | id"
    several = msgspec.structs.replace(one, blocks=lengths)
    assert layout_words.families(several) == "AoSoA×128/16, split: x y | z m | id"
    assert layout_words.brief(several, 20).startswith("as AoSoA×128/16 of x, y | z, m | id")


def test_elements_stored_by_class_in_words() -> None:
    gain = Interval(2.0, 1.9, 2.1, 9)
    assert layout_words.families(candidate(1, gain, families=("split", "compact"), classes=2)) == "by class, 1 of 2"
    assert (
        layout_words.families(candidate(1, gain, families=("split", "compact", "pad"), classes=3))
        == "by class, 1 of 3, padded"
    )
    groups = [("x", "y")]
    text = layout_words.transformation(("split", "compact"), None, groups, False, 2)
    assert text.startswith("by class, the one of each 2 neighbouring elements that the call uses in a first part, the other")
    assert text.endswith("in a second part")
    assert "2 further parts" in layout_words.transformation(("split", "compact"), None, groups, False, 3)
    structure = msgspec.structs.replace(report().hotspots[0].structures[0], used_part=0.5)
    assert structure_words.shape(structure).endswith("of each element; this call goes to 50% of the elements")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_loads_the_page_without_errors_or_requests(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(html.render(report()))
    log = tmp_path / "net.json"
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={log}", "--disable-background-networking"]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=50, check=True)
    assert "as SoA of x: step 3.6× faster (3.5–3.7)" in done.stdout
    assert "CONSOLE" not in done.stderr
    asked = re.findall(r'"url":"(https?://[^"]+)"', log.read_text())
    assert [url for url in asked if "google" not in url and "gvt1" not in url] == []


@pytest.mark.parametrize(
    ("value", "text"), [(1, "1 B"), (80000, "78.1 KiB"), (100_000_000, "95.4 MiB"), (1 << 32, "4.0 GiB")]
)
def test_sizes(value: int, text: str) -> None:
    assert quantities.size(value) == text


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (3.2, "3 ns"), (4.2e6, "4.2 ms"), (25_000, "25 µs"), (2e9, "2 s")])
def test_durations(value: float | None, text: str) -> None:
    assert quantities.nanoseconds(value) == text


def shown_with_users(place: Placement | None, *users: UserReport, unknown: str | None = None) -> contract.Report:
    sample = report()
    hotspot = sample.hotspots[0]
    structure = msgspec.structs.replace(hotspot.structures[0], users=users, placement=place, users_unknown=unknown)
    costs = msgspec.structs.replace(hotspot.candidates[1], elsewhere=(Elsewhere("move<T>", "s0", 64, 9),))
    changed = msgspec.structs.replace(hotspot, structures=(structure,), candidates=(hotspot.candidates[0], costs))
    return msgspec.structs.replace(sample, hotspots=(changed,))


def test_who_else_uses_the_data_is_shown() -> None:
    move = UserReport("move<T>", "/src/app.c", 15, None, "between", 128, 64, ("x", "v<x>"))
    save = UserReport("save", "/src/app.c", 20, "write", "after", 1, 0, ("x",))
    place = Placement(5, 9, 9, "move<T> (app.c:15)", "save (app.c:20, by write)", False)
    shown = shown_with_users(place, move, save)
    text = " ".join(terminal.render(shown).split())
    assert "seen to use it between calls: move<T> (reads and writes x, v<x>, app.c:15)" in text
    assert "after the last call: save (reads x, app.c:20 by write)" in text
    assert "Update every use of `particle`, also in `move<T>`, `save`. Code before call 5 was not monitored." in text
    page = html.render(shown)
    assert "seen to use it besides the hotspot: <code>move&lt;T&gt;</code>, <code>save</code>; what runs before" in page
    assert "move&lt;T&gt;" in page
    assert "64 → 9" in page
    assert "converted in after the last write, by move&lt;T&gt; (app.c:15) and back before the first read, by save" in page
    assert contract.decode(contract.encode(shown)) == shown


def test_elements_of_an_unused_array_are_one_field() -> None:
    base = report().hotspots[0].structures[0]
    cold = tuple(FieldUse(f"name[{k}]", "char", 100 + k, 1, 0, 0) for k in range(32))
    other = FieldUse("key", "int", 132, 4, 0, 0)
    changed = msgspec.structs.replace(base, cold_fields=(*cold, other))
    assert [(f.name, f.offset, f.bytes) for f in structure_words.unused(changed)] == [
        ("name[0..31]", 100, 32),
        ("key", 132, 4),
    ]


def test_a_matrix_that_is_turned_is_no_array_of_structures() -> None:
    assert layout_words.transformation(["permute"], None, [["value"]], False) == "with its dimensions in another order"


def test_a_loop_is_called_one() -> None:
    hotspot = msgspec.structs.replace(report().hotspots[0], symbol="_Z1fv", name="f", region="loop")
    assert hotspot_words.name(hotspot) == "loop in f"
    assert hotspot_words.name(msgspec.structs.replace(hotspot, region="function", name="")) == "_Z1fv"


def test_the_headline_is_the_first_sentence() -> None:
    text = "Change it: store `a` (x.c:3) so: f runs 2.5 times as fast (95 % interval). Do not convert."
    assert hotspot_words.headline(text) == (text[: text.index(" Do not")], "Do not convert.")
    assert hotspot_words.headline("Keep it: nothing to do.") == ("Keep it: nothing to do.", "")


def test_nothing_else_is_claimed_only_where_nothing_was_missed() -> None:
    for gapless, words in (
        (True, "nothing else touched the pages that it fills between calls 5 and 14"),
        (False, "nothing else was seen to touch"),
    ):
        text = terminal.render(shown_with_users(Placement(5, 9, 0, None, None, gapless)))
        assert words in text
        part = "partial end pages unmonitored" if gapless else "monitored in part"
        assert f"No other accesses observed between calls 5 and 14 ({part})." in text
    unknown = terminal.render(shown_with_users(None, unknown="its memory is freed between the calls"))
    assert "who else uses it is not known: its memory is freed between the calls" in unknown
    assert "other functions were not monitored" in unknown


def test_flags_that_the_program_does_not_record_are_told() -> None:
    (hotspot,) = report().hotspots
    assert hotspot_words.compiled(hotspot) == "mock-ups were compiled by gcc-12 -O2, as the program was"
    assert "compiled by" not in terminal.render(report())
    assert "mock-ups were compiled by gcc-12 -O2" in html.render(report())
    for compiler, how in (("clang-14", "-grecord-command-line"), ("gcc-12", "-g")):
        by = CompiledBy(compiler, ("-O2", "-mavx"), False)
        unknown = msgspec.structs.replace(report(), hotspots=(msgspec.structs.replace(hotspot, compiled=by),))
        assert f"compiled with {how} it would record them" in " ".join(terminal.render(unknown).split())
    stand_in = CompiledBy("gcc-12", (), False, "it names icc: gcc stands in")
    other = msgspec.structs.replace(hotspot, compiled=stand_in)
    assert hotspot_words.compiled(other).endswith("(it names icc: gcc stands in)")
    assert hotspot_words.compiled(msgspec.structs.replace(hotspot, compiled=None)) == ""


def test_the_page_says_where_each_field_goes() -> None:
    page = html.render(report())
    assert "as formulas" in page
    assert "x: byte = 8*i of p_x; i &lt; 1000" in page


def test_the_way_to_a_layout_is_told_with_its_terms() -> None:
    shown = report()
    steps = (RuleStep("4", "S_{0,1;10} ⊗ A_1000"), RuleStep("7", "A_2 ⊗ A_1000"))
    made = candidate(1, Interval(3.61, 3.5, 3.7, 9), steps={"s0": steps})
    hotspot = msgspec.structs.replace(shown.hotspots[0], candidates=(made,))
    page = html.render(msgspec.structs.replace(shown, hotspots=(hotspot,)))
    for rule, term in (("4, exchange two dimensions", steps[0].term), ("7, drop the places", steps[1].term)):
        assert re.search(rf"<li>rule {rule}[^<]*: <code>{re.escape(term)}</code></li>", page)
    assert "<li>rule 4: exchange two dimensions" in html.render(shown)


def test_all_of_an_element_is_not_all_of_an_array() -> None:
    """Which elements a call goes to is another question."""
    (structure,) = report().hotspots[0].structures
    fields = tuple(FieldUse(name, "double", 8 * k, 8, 1, 0) for k, name in enumerate("xv"))
    whole = msgspec.structs.replace(structure, element_bytes=16, fields=fields)
    assert structure_words.shape(whole) == "array of structures; the hotspot uses all of each element"
    assert structure_words.shape(msgspec.structs.replace(whole, count=1)) == "one block; the hotspot uses all of it"
    part = msgspec.structs.replace(whole, used_part=0.25)
    assert structure_words.shape(part).endswith("uses all of each element; this call goes to 25% of the elements")


@pytest.mark.parametrize("width", [80, 110, 160])
def test_times_by_threads_are_told_whole(width: int) -> None:
    """On 80 columns they were cut within a number."""
    times = Time(1.77e6, 1.27e6, 19.3e6, 4)
    gain = Interval(1.94, 1.48, 12.43, 4)
    one = ThreadCount(2, None, True, times, gain, gain, times, None, gain, gain, (0.87, 0.96), (0.87, 0.96))
    hotspot = msgspec.structs.replace(report().hotspots[0], by_threads=ByThreads(2, "c1", "steady", (one,)))
    text = terminal.render(msgspec.structs.replace(report(), hotspots=(hotspot,)), width=width, whole=True)
    table = text[text.index("threads  ") :].partition("*:")[0]
    assert "…" not in table
    for piece in ("19.3", "12.43"):
        assert piece in table
