"""The XSAVE area as ``PTRACE_GETREGSET`` gives it, in its standard form: vector and mask registers, putting a state back."""

from __future__ import annotations

from dataclasses import dataclass

OPMASK, ZMM_HIGH, HIGH_16 = 5, 6, 7
"""Numbers of the components of AVX-512: mask registers, upper halves of zmm0 to zmm15, and zmm16 to zmm31."""

_XMM, _YMM_HIGH = 160, 576  # the same on every processor; where the components of AVX-512 are, `cpuid` says

_KERNELS = slice(464, 512)
"""Bytes of the area that the kernel keeps for itself."""
_PRESENT, _HEADER_END = 512, 576
"""The header: first the bits of the components that are present."""


@dataclass(frozen=True, slots=True)
class Components:
    """Offsets of the components of AVX-512."""

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


def restored(saved: bytes, components: int, kernels: bytes) -> bytes:
    """The area with which a thread goes on as XSAVE ``saved`` it, ``components`` of it being valid. The rest is as in
    ``kernels``, what the kernel gives for the thread now."""
    size = min(len(kernels), len(saved))
    area = bytearray(saved[:size] + kernels[size:])
    area[_KERNELS] = kernels[_KERNELS]
    mine, theirs = (int.from_bytes(source[_PRESENT : _PRESENT + 8], "little") for source in (saved, kernels))
    area[_PRESENT : _PRESENT + 8] = (mine & components | theirs & ~components).to_bytes(8, "little")
    area[_PRESENT + 8 : _HEADER_END] = kernels[_PRESENT + 8 : _HEADER_END]
    return bytes(area)


def _part(area: bytes, start: int, number: int, size: int) -> bytes:
    return area[start + number * size : start + (number + 1) * size]
