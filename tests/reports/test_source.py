"""The source view: strides in words, hot lines, and reports without the user's code."""

from __future__ import annotations

import re

import msgspec
import pytest

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Point, Stream
from layout_advise.reports.model import contract
from layout_advise.reports.model.redact import LEFT_OUT, without_source
from layout_advise.reports.model.source import AnnotatedLine, LineUse, StrideKind
from layout_advise.reports.pages import html, terminal
from layout_advise.reports.pages.html import original
from layout_advise.reports.words.source_words import hot_lines, line_place, line_use
from layout_advise.reports.words.stream_words import stride_of
from tests.support.sample_report import report


def loops(*trips: int, coefs: tuple[int, ...]) -> FoldedStream:
    node: Loop | Point = Point(Affine(4096, coefs))
    count = 1
    for trip in reversed(trips):
        node, count = Loop(Affine(trip), (node,)), count * trip
    return FoldedStream((node,), count)


@pytest.mark.parametrize(
    ("stream", "kind", "stride"),
    [
        (loops(100, coefs=(8,)), "unit", 8),
        (loops(100, coefs=(-8,)), "unit", -8),
        (loops(100, coefs=(80,)), "constant", 80),
        (loops(10, 100, coefs=(8, 0)), "broadcast", 0),
        (loops(10, 100, coefs=(800, 8)), "unit", 8),
        (loops(100, 1, coefs=(80, 0)), "constant", 80),
        (loops(coefs=()), "once", None),
        (FoldedStream((*loops(5, coefs=(8,)).nodes, *loops(5, coefs=(16,)).nodes), 10), "irregular", None),
        (AddressSet(4096, 8192, 8, 100, None), "irregular", None),
        (AddressSet(4096, 4096, 0, 100, None), "broadcast", None),
    ],
)
def test_strides(stream: Stream, kind: StrideKind, stride: int | None) -> None:
    assert stride_of(stream, 8) == (kind, stride)


def test_accesses_of_a_line_in_words() -> None:
    constant = LineUse("p", "s0", ("P",), 1300, 1300, 8, "constant", 80)
    assert line_use(constant) == "p.P: 1 300 reads and 1 300 writes of 8 B, constant stride of 80 B"
    both = LineUse("p", "s0", ("x", "y"), 1, 0, 16, "irregular")
    assert line_use(both) == "p (x, y): 1 read of 16 B, irregular"
    missing = LineUse("p", "s0", ("P",), 1300, 0, 8, "constant", 80, (1300, 1200, 0))
    assert line_use(missing).endswith("constant stride of 80 B; modelled misses: L1 1 300, L2 1 200")
    assert line_use(msgspec.structs.replace(missing, misses=(0, 0, 0))).endswith("; modelled misses: none")
    assert line_place(AnnotatedLine("/a/b.c", 3, None, "", 0.0)) == "b.c:3"
    assert line_place(AnnotatedLine("/a/b.c", 3, "0x10", "", 0.0)) == "0x10 b.c:3"


def test_hot_lines_are_ranked_and_linked() -> None:
    (hotspot,) = report().hotspots
    assert [line.line for line in hot_lines(hotspot)] == [65, 64]
    page = html.render(report())
    assert '<a href="#0-main.c-65">main.c:65</a>: 40.0 % of the samples' in page
    assert '<tr id="0-main.c-65" class="hot">' in page
    assert "particles.v&lt;x&gt;: 1 000 reads and 1 000 writes of 8 B, constant stride of 80 B" in page
    assert "movsd xmm0, [rdi]" in page
    unsampled = tuple(msgspec.structs.replace(line, samples=0.0) for line in hotspot.source)
    assert [line.line for line in hot_lines(msgspec.structs.replace(hotspot, source=unsampled))] == [65, None]
    assert "without source" in page
    assert 'id="source0"' not in html.render(without_source(report()))


def test_the_original_stands_beside_the_mock_ups() -> None:
    (hotspot,) = report().hotspots
    place, shown = original(hotspot, 10_000) or ("", "")
    assert place == "main.c:64 to 65"
    assert "&lt;b&gt;" in shown
    assert "movsd" not in shown
    assert original(hotspot, 10) is None
    bare = msgspec.structs.replace(hotspot, source=tuple(line for line in hotspot.source if line.address))
    assert original(bare, 10_000) == ("0x1139 to 0x1139", "movsd xmm0, [rdi]")
    apart = tuple(msgspec.structs.replace(line, line=99) if line.line == 65 else line for line in hotspot.source)
    text = (original(msgspec.structs.replace(hotspot, source=apart), 10_000) or ("", ""))[1]
    assert [line.startswith("⋮") for line in re.sub("<[^>]+>", "", text).splitlines()] == [False, True, False]
    page = html.render(report())
    assert page.index("The original, main.c:64 to 65") < page.index("la_run")
    assert "The original" not in html.render(without_source(report()))


def test_nothing_of_the_user_is_left() -> None:
    hotspot = msgspec.structs.replace(report().hotspots[0], file="/away/secret-project/main.c")
    shown = msgspec.structs.replace(
        report(),
        command=("/away/secret-project/app", "--key=SECRET", "~/secret-project/in.txt"),
        started_in="/away/secret-project",
        binary=contract.Binary("/away/secret-project/app", None, "GNU C17 -I/away/secret-project/include"),
        hotspots=(hotspot,),
    )
    bare = without_source(shown)
    for text in (html.render(bare), terminal.render(bare, verbose=True), contract.encode(bare).decode()):
        assert not any(word in text for word in ("secret-project", "SECRET", "/away", "p[i].v", "la_run", "xmm0", "movsd"))
        assert "particles" in text
    assert bare.command == ("app", LEFT_OUT)
    assert bare.hotspots[0].file == "main.c"
    assert bare.hotspots[0].candidates[0].drawing == shown.hotspots[0].candidates[0].drawing
    assert contract.decode(contract.encode(bare)) == bare
