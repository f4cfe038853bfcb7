"""The parts of its memory operand that a masked AVX-512 instruction accesses.

A mask register has a bit for each element that the instruction works on. An element of memory is accessed where one of the
bits of the elements that it goes into is set; what is broadcast is one element here. Instructions that are not known here
access their whole operand: shuffles and permutations, which read all of it whatever their mask is, among them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

EVEX_BYTE = 0x62
"""The first byte of an EVEX prefix."""
_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf2\xf3")
_BYTES = {"b": 1, "w": 2, "d": 4, "q": 8, "ps": 4, "pd": 8, "ph": 2, "dq": 4, "udq": 4, "qq": 8, "uqq": 8}

_FLOATS = re.compile(
    r"v(?:mov[au]?|add|sub|mul|div|min|max|sqrt|andn?|x?or|blendm|cmp\w*|rcp14|rsqrt14|getexp|getmant|rndscale|reduce|range|"
    r"fixupimm|scalef|fpclass|f(?:n?m(?:add|sub)|maddsub|msubadd)(?:132|213|231))(p[sd]|s[sd])$"
)
_INTEGERS = re.compile(
    r"vp(?:addu?s?|subu?s?|andn?|x?or|mull|mulhu?|mulhrs|mulu?d|avg|minu?s?|maxu?s?|abs|cmp\w*|testn?m|ternlog|blendm|ro[lr]v?|"
    r"s[lr]lv|srav|popcnt|lzcnt|madd52[lh]u)([bwdq])$"
)
_MOVES = re.compile(r"vmovdq[au](8|16|32|64)$")
_CONVERSIONS = re.compile(r"vcvtt?(ps|pd|ph|u?dq|u?qq)2(ps|pd|ph|u?dq|u?qq)$")
_WIDTHS = re.compile(r"vpmov(?:us|s|sx|zx)?([bwdq])([bwdq])$")
_SCALARS = re.compile(r"vcvts[sd]2s[sd]$")
_SHIFTS = re.compile(r"vps(?:ll|rl|ra)([wdq])$")
_BROADCASTS = re.compile(r"vp?broadcast(?:s[sd]|[bwdq]|[fi](32|64)x\d)$")
_EXTRACTIONS = re.compile(r"vextract[fi](32|64)x\d$")
_COUNTED = re.compile(r"vp?(?:compress|expand)(p[sd]|[bwdq])$")


@dataclass(frozen=True, slots=True)
class Evex:
    """An EVEX prefix: the number of the mask register (0: none), the bit that makes the memory operand one element for all
    (with register operands it says how to round), the bytes of a vector, whether elements that are not governed become
    zero, and the opcode map."""

    mask: int
    broadcast: bool
    vector_bytes: int
    zeroing: bool = False
    opcode_map: int = 0


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements of ``bytes`` bytes one behind the other; number k is accessed if a bit of ``bits[k]`` is set in the mask, or,
    where they are ``counted``, in a number with as many low bits set as the mask has bits among the elements'."""

    bytes: int
    bits: tuple[int, ...]
    counted: bool = False


def opcode_at(code: bytes) -> int:
    """The offset of the opcode in an instruction, or of its VEX or EVEX prefix: behind all legacy prefixes."""
    return next((k for k, byte in enumerate(code) if byte not in _PREFIXES), 0)


def evex_of(code: bytes) -> Evex | None:
    """The EVEX prefix of an instruction, or ``None``."""
    at = opcode_at(code)
    if code[at] != EVEX_BYTE:
        return None
    last = code[at + 3]
    return Evex(last & 7, bool(last & 16), 16 << (last >> 5 & 3), bool(last & 128), code[at + 1] & 7)


def overshoot(code: bytes) -> int:
    """By how much capstone gives the displacement of a memory operand too great: it multiplies the short displacement of
    ``vmovq [m], xmm`` (66 0F 7E) by 16 instead of 8."""
    at = opcode_at(code)
    if code[at] != EVEX_BYTE or code[at + 1] & 7 != 1 or code[at + 2] & 0x83 != 0x81 or code[at + 4] != 0x7E:
        return 0
    if code[at + 5] >> 6 != 1:
        return 0
    short = code[at + 7 if code[at + 5] & 7 == 4 else at + 6]
    return 8 * (short - 256 if short > 127 else short)


def elements_of(name: str, evex: Evex, size: int, *, immediate: bool) -> Elements | None:
    """The elements of the memory operand (``size`` bytes) of a masked instruction; ``None`` where all of it is accessed.
    ``immediate`` tells whether the last operand is one: by a vector in memory, shifts read all of it."""
    widest = _widest(name, size, immediate) if evex.mask else None
    if widest is None:
        return None
    count = 1 if not widest else size // widest if _EXTRACTIONS.match(name) else evex.vector_bytes // widest
    if evex.broadcast or _BROADCASTS.match(name):
        return Elements(size, ((1 << count) - 1,))
    return Elements(size // count, tuple(1 << k for k in range(count)), _COUNTED.match(name) is not None)


def _widest(name: str, size: int, immediate: bool) -> int | None:
    """Bytes of the elements that the mask's bits stand for, the wider ones where they are converted; 0: there is one."""
    found = (
        _FLOATS.match(name) or _INTEGERS.match(name) or _COUNTED.match(name) or (_SHIFTS.match(name) if immediate else None)
    )
    if found:
        return _BYTES.get(found[1], 0)
    found = _MOVES.match(name) or _EXTRACTIONS.match(name)
    if found:
        return int(found[1]) // 8
    found = _CONVERSIONS.match(name) or _WIDTHS.match(name)
    if found:
        return max(_BYTES[found[1]], _BYTES[found[2]])
    found = _BROADCASTS.match(name)
    if found:
        return int(found[1]) // 8 if found[1] else size
    return 0 if _SCALARS.match(name) else None
