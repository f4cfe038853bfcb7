"""Moves of vector registers, word by word."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from layout_advise.errors import RefusedError
from layout_advise.mockup.readdressed.pieces import MovedPiece, in_pieces, words
from layout_advise.tracer.code.decoder import GPR_NAMES
from tests.support.tracing.assembled import assemble, read_by_objdump

HALVES = (MovedPiece(0, 8, 0), MovedPiece(8, 8, 64))
LANES = (MovedPiece(0, 4, 0), MovedPiece(4, 4, 400), MovedPiece(8, 4, 800), MovedPiece(12, 4, -8))
PAIR = (MovedPiece(0, 4, 0), MovedPiece(4, 4, 1 << 20))

FORMS = {
    ("movups {x}, [rax]", HALVES): ("movq {x}, [{t}{0:+}]", "movhps {x}, [{t}{1:+}]"),
    ("movdqu [rax+rcx*8], {x}", HALVES): ("movq [{t}{0:+}], {x}", "movhps [{t}{1:+}], {x}"),
    ("movapd {x}, [rip+64]", LANES): (
        "movss {x}, [{t}{0:+}]",
        *(f"insertps {{x}}, dword ptr [{{t}}{{{k}:+}}], {16 * k}" for k in (1, 2, 3)),
    ),
    ("movaps [rsp+8], {x}", LANES): (
        "movss [{t}{0:+}], {x}",
        *(f"extractps dword ptr [{{t}}{{{k}:+}}], {{x}}, {k}" for k in (1, 2, 3)),
    ),
    ("movq {x}, [rbx]", PAIR): ("movss {x}, [{t}{0:+}]", "insertps {x}, dword ptr [{t}{1:+}], 16"),
    ("movsd [rbx+8], {x}", PAIR): ("movss [{t}{0:+}], {x}", "extractps dword ptr [{t}{1:+}], {x}, 1"),
    ("movlps [rbx+8], {x}", PAIR): ("movss [{t}{0:+}], {x}", "extractps dword ptr [{t}{1:+}], {x}, 1"),
    ("vmovups {x}, [rax]", HALVES): ("vmovq {x}, [{t}{0:+}]", "vmovhps {x}, {x}, [{t}{1:+}]"),
    ("vmovups [rax], {x}", HALVES): ("vmovq [{t}{0:+}], {x}", "vmovhps [{t}{1:+}], {x}"),
    ("vmovdqu {x}, [rax]", LANES): (
        "vmovss {x}, [{t}{0:+}]",
        *(f"vinsertps {{x}}, {{x}}, dword ptr [{{t}}{{{k}:+}}], {16 * k}" for k in (1, 2, 3)),
    ),
    ("vmovsd [rax], {x}", PAIR): ("vmovss [{t}{0:+}], {x}", "vextractps dword ptr [{t}{1:+}], {x}, 1"),
}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[0])
def test_they_are_what_the_assembler_makes_of_their_words(tmp_path: Path, form: tuple[str, tuple[MovedPiece, ...]]) -> None:
    text, pieces = form
    made, wanted = b"", ""
    for vector, register in product(("xmm0", "xmm3", "xmm9", "xmm15"), (n for n in range(16) if n != 4)):
        code = assemble(tmp_path, text.format(x=vector)).ranges[0].code
        made += in_pieces(code, register, 1024, pieces)
        places = [1024 + piece.distance for piece in pieces]
        wanted += "".join(f"{line.format(*places, x=vector, t=GPR_NAMES[register])}\n" for line in FORMS[form])
    assert read_by_objdump(tmp_path, made) == read_by_objdump(tmp_path, assemble(tmp_path, wanted).ranges[0].code)


@pytest.mark.parametrize(
    "text",
    [
        "addps xmm1, [rax]",
        "movlps xmm1, [rax]",
        "mov rax, [rbx]",
        "movss xmm1, [rax]",
        "vmovups ymm1, [rax]",
        "vmovups xmm17, [rax]",
    ],
)
def test_other_instructions_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(RefusedError, match="does not lie together"):
        in_pieces(assemble(tmp_path, text).ranges[0].code, 1, 0, HALVES)


def test_runs_are_cut_into_words() -> None:
    assert words([(0, 8, 0), (8, 16, 24)]) == (MovedPiece(0, 8, 0), MovedPiece(8, 8, 24))
    assert words([(0, 4, 0), (4, 16, 96)]) == (MovedPiece(0, 4, 0), MovedPiece(4, 4, 96), MovedPiece(8, 8, 100))
    assert words([(0, 12, 0), (12, 16, 40)]) == (MovedPiece(0, 8, 0), MovedPiece(8, 4, 8), MovedPiece(12, 4, 40))
    assert words([(0, 2, 0), (2, 8, 40)]) is None
