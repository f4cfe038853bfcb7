"""A report as the pipeline would make it, for tests of the reporters."""

from __future__ import annotations

from layout_advise.reports.model import contract
from layout_advise.reports.model.candidate import (
    Bytes,
    CandidateReport,
    Conversion,
    Identity,
    Interval,
    LiveReport,
    PartReport,
    Traffic,
    Verification,
)
from layout_advise.reports.model.hotspot import CompiledBy, HotspotReport, NotLifted, Original, Span, TraceSummary, Verdict
from layout_advise.reports.model.live import LiveCourse
from layout_advise.reports.model.source import AnnotatedLine, LineUse
from layout_advise.reports.model.structure import FieldUse, StructureReport


def candidate(number: int, speedup: Interval | None, **changes: object) -> CandidateReport:
    """A SoA candidate of ``s0``; ``changes`` replace fields."""
    values: dict[str, object] = {
        "id": f"c{number}",
        "structures": ("s0",),
        "families": ("soa", "compact"),
        "block": None,
        "temporary": False,
        "layout": {"s0": "S_{0,1;2} ⊗ A_1000"},
        "derivation": ("4", "7"),
        "variant": "plain",
        "parts": (PartReport("s0", ("x",), 8, "A_1000", "byte = 8*i of p_x; i < 1000"),),
        "evidence": "verified" if speedup else "rejected",
        "reason": None if speedup else "crashed: SIGSEGV",
        "verification": Verification(3, 80000, 8000, 0),
        "speedup": speedup,
        "over_identity": speedup,
        "cold": None,
        "conversion": Conversion(1.5, 0.5, 4),
        "net_speedup": None,
        "program_speedup": 1.5,
        "traffic": Traffic(1250, 250),
        "bytes": Bytes(80000, 16000),
        "mockup": f"mockups/c{number}.c",
        "declaration": "struct <new> { double x[1000]; };",
        "drawing": "<svg xmlns='http://www.w3.org/2000/svg' width='10' height='10'></svg>",
        "source": "void la_run(void) { if (1 < 2) {} }",
        "change": " struct particle {  /* 80 bytes */\n-    double x;\n     double v<x>;\n };\n+double *p_x;\n",
    }
    return CandidateReport(**{**values, **changes})  # type: ignore[arg-type]


def live(**changes: object) -> LiveReport:
    """A trial of 360 calls that gained 3.4 times; ``changes`` replace what its calls in their order were."""
    stretches = range(120)
    values: dict[str, object] = {
        "first": 5,
        "calls": 360,
        "stretch": 3,
        "original_ns": tuple(8e6 + 1e4 * (k % 9) for k in stretches),
        "layout_ns": tuple(None if 30 <= k < 40 else 2.4e6 + 1e4 * (k % 7) for k in stretches),
        "copying_ns": tuple(0.0 if k % 10 else 8e5 for k in stretches),
        "left_out": tuple(3 if 30 <= k < 40 else 0 for k in stretches),
    }
    course = LiveCourse(**{**values, **changes})  # type: ignore[arg-type]
    gain = Interval(3.4, 3.3, 3.5, 5)
    return LiveReport(330, 30, 24, 320, gain, 8e6, 2.4e6, 3.1, 1.2, 0, 1200, 0, False, course=course)


def report(verdict: Verdict | None = None) -> contract.Report:
    """One hotspot, two candidates, the first of them advised."""
    gain = Interval(3.61, 3.5, 3.7, 9)
    structure = StructureReport(
        id="s0",
        name="particles",
        kind="heap",
        type="struct particle",
        alloc_site="main.c:29",
        base="0x7ffff0000000",
        bytes=80000,
        element_bytes=80,
        count=1000,
        unit_bytes=8,
        layout="A_1000 ⊗ S_{0,1;10}",
        fields=(FieldUse("x", "double", 0, 8, 1000, 0), FieldUse("v<x>", "double", 8, 8, 1000, 1000)),
    )
    hotspot = HotspotReport(
        symbol="step",
        region="function",
        file="main.c",
        line=63,
        share=0.63,
        calls=8,
        call=5,
        snapshot="criu",
        threads=1,
        clock="thread-cpu",
        original=Original(9e6, 8e6, 8.2e6),
        trace=TraceSummary("clone", 3000000, 12, False),
        structures=(structure,),
        identity=Identity("verified", Interval(1.0, 0.98, 1.02, 9), None),
        noise=Span(0.98, 1.02),
        candidates=(candidate(2, None), candidate(1, gain)),
        verdict=verdict or Verdict("change", "c1", 3.61, "measured-gain", "Change it: c1 <SoA> is 3.61 times as fast."),
        source=(
            AnnotatedLine("/project/main.c", 64, None, "for (i = 0; i < n; i++) /* <b> */", 0.2),
            AnnotatedLine(
                "/project/main.c",
                65,
                None,
                "    p[i].v += p[i].x;",
                0.4,
                (LineUse("particles", "s0", ("v<x>",), 1000, 1000, 8, "constant", 80),),
            ),
            AnnotatedLine(None, None, "0x1139", "movsd xmm0, [rdi]", 0.0, (LineUse("sums", None, (), 1, 0, 8, "once"),)),
        ),
        compiled=CompiledBy("gcc-12", ("-O2",), True),
        not_lifted=(NotLifted("0x401000", "vpshufb xmm0, xmm1", "main.c", 71, "unknown shuffle"),),
    )
    return contract.Report(
        schema=contract.SCHEMA,
        tool=contract.Tool("layout-advise", "0.1.0"),
        created="2026-01-01T00:00:00Z",
        status="complete",
        command=("./app", "</code>"),
        binary=contract.Binary("app", "abcdef0123456789", "GNU C17 12.2.0 -O2 -g"),
        program=contract.Program(0, None, True),
        machine=contract.Machine("Some CPU", 2, 64, 32768, 524288, 33554432),
        quality=contract.Quality(
            0.5, (contract.Check("noise-floor", True, 0.02, "noise 2 %"), contract.Check("in-situ", False, 0.2, "far off"))
        ),
        seconds=contract.Seconds(1, 2, 3, 4, 10),
        hotspots=(hotspot,),
        profile=(contract.Profile("step", 0.63, "app"),),
    )
