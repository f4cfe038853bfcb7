"""Vector and mask registers in what ``PTRACE_GETREGSET`` gives: the standard form of the XSAVE area."""

from __future__ import annotations

from dataclasses import dataclass

OPMASK, ZMM_HIGH, HIGH_16 = 5, 6, 7
"""Numbers of the components of AVX-512: mask registers, upper halves of zmm0 to zmm15, and zmm16 to zmm31."""

_XMM, _YMM_HIGH = 160, 576  # the same on every processor; where the components of AVX-512 are, `cpuid` says


@dataclass(frozen=True, slots=True)
class Components:
    """Where the components of AVX-512 begin."""

    opmask: int
    zmm_high: int
    high_16: int


def avx2_vector(area: bytes, number: int) -> bytes:
    """The 32 bytes of ymm ``number`` (below 16)."""
    return _part(area, _XMM, number, 16) + _part(area, _YMM_HIGH, number, 16)


def avx512_vector(area: bytes, number: int, at: Components) -> bytes:
    """The 64 bytes of zmm ``number``."""
    if number >= 16:
        return _part(area, at.high_16, number - 16, 64)
    return avx2_vector(area, number) + _part(area, at.zmm_high, number, 32)


def opmask(area: bytes, number: int, at: Components) -> int:
    """Mask register k ``number``."""
    return int.from_bytes(_part(area, at.opmask, number, 8), "little")


def _part(area: bytes, start: int, number: int, size: int) -> bytes:
    return area[start + number * size : start + (number + 1) * size]
