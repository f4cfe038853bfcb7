"""The shared object around re-addressed machine code: its buffers, the conversion to its layout and back, and the code."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from layout_advise.layoutalgebra.derive.structure import first_buffers
from layout_advise.mockup.emit.copies import copy_functions, map_function, place_function
from layout_advise.mockup.emit.frame import PAGE, buffer_specs
from layout_advise.mockup.emit.scope import identifier
from layout_advise.mockup.readdressed.image import CodeImage
from layout_advise.mockup.readdressed.moves import RING, Moves

_IMAGE, _ARRAYS = "la_image", "la_arrays"


def emit_code(symbol: str, moves: Moves, code: CodeImage, file: Path, *, put: bool = False) -> str:
    """The C of it, with the exports of ``tracer/agent/abi.h``; ``file`` holds the image, and with ``put`` it tells where its
    layout has what was at an old address."""
    return "\n\n".join(_parts(symbol, moves, code, file, put)) + "\n"


def _parts(symbol: str, moves: Moves, code: CodeImage, file: Path, put: bool) -> Iterator[str]:
    relayouts = moves.candidate.relayouts
    first = first_buffers(relayouts)
    yield _header(symbol, moves, code)
    yield '#include "mockup.h"'
    yield f"static uint8_t {_ARRAYS}[{max(moves.arrays.bytes, 1)}] __attribute__((aligned({PAGE})));"
    yield buffer_specs(relayouts, 0, {k: f"{_ARRAYS} + {at}" for k, at in enumerate(moves.arrays.pages)})
    yield from copy_functions(moves.candidate, moves.binding, moves.plan, first)
    if put:
        maps = {r.structure.id: f"map_{identifier(r.structure.name)}_{k}" for k, r in enumerate(relayouts)}
        for relayout, start in zip(relayouts, first, strict=True):
            yield map_function(relayout, start, maps[relayout.structure.id])
        yield place_function(relayouts, maps)
    yield (
        f'__asm__(".section .rodata\\n.balign 16\\n{_IMAGE}: .incbin \\"{file}\\"\\n.previous");\n'
        f'extern const uint8_t {_IMAGE}[] __attribute__((visibility("hidden")));\n'
        f"LA_EXPORT const struct la_code la_code = {{\n"
        f"    .at = {code.address:#x}, .bytes = {len(code.image)}, .entry = {code.entry:#x}, .image = {_IMAGE}}};"
    )
    yield _settle(code)


def _header(symbol: str, moves: Moves, code: CodeImage) -> str:
    lines = [f"/* Machine code of {symbol} whose accesses go to another layout; {sha256(code.image).hexdigest()[:16]}."]
    for relayout in moves.candidate.relayouts:
        structure = relayout.structure
        lines.append(
            f" * Layout of {structure.name} ({structure.count} elements of {structure.element_bytes} bytes): {relayout.term}"
        )
    lines.append(" * Moved, by the address of the instruction; k numbers the elements:")
    lines += [f" *   {address:#x}: {how}" for address, how in code.moved]
    return "\n".join(line.replace("*/", "* /") for line in lines) + " */"


def _settle(code: CodeImage) -> str:
    lines = [
        "LA_EXPORT void la_settle(const struct la_context *context, uint8_t *code)",
        "{",
        "    (void)context;",
        "    (void)code;",
    ]
    for at, word in code.words.items():
        value = f"(uint64_t){_ARRAYS} + UINT64_C({word.value % RING:#x})"
        lines.append(f"    *(uint64_t *)(code + {at}) = {value};")
    return "\n".join([*lines, "}"])
