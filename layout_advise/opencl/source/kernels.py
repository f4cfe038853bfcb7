"""Kernels as data: their parameters, and the records that lie in their buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from layout_advise.apply.rewrite.program import SourceProgram
from layout_advise.apply.rewrite.syntax import CType, Syntax
from layout_advise.opencl.source.preprocess import PlainSource

Space = Literal["global", "constant", "local", "private", "generic"]


def space_of(shape: CType) -> Space:
    """The address space that a type is in; ``generic`` for what OpenCL 2.0 leaves open."""
    words = shape.text.replace("(", " ").replace("[", " ").split()
    for space in ("global", "constant", "local", "private"):
        if f"__{space}" in words:
            return space
    return "generic"


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """A parameter; ``record`` is the USR of the record that a buffer of the host holds, else empty."""

    name: str
    form: Literal["buffer", "local", "value", "other"]
    """``other`` for images, samplers, pipes and queues."""
    record: str
    element_bytes: int
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A kernel function."""

    name: str
    parameters: tuple[KernelParameter, ...]
    node: Syntax
    line: int


@dataclass(frozen=True, slots=True)
class BufferMember:
    """A member of a record, in bytes; arrays, vectors and records in it stay whole."""

    name: str
    type: str
    offset: int
    bytes: int
    align: int


@dataclass(frozen=True, slots=True, eq=False)
class BufferRecord:
    """A record that lies in buffers; ``padding`` is the bytes of an element that no member has."""

    name: str
    usr: str
    bytes: int
    members: tuple[BufferMember, ...]
    node: Syntax
    obstacle: str = ""
    """Why its members cannot be moved apart; empty where they can."""

    @property
    def padding(self) -> tuple[tuple[int, int], ...]:
        """First byte and number of bytes of each gap."""
        gaps, at = [], 0
        for member in self.members:
            if member.offset > at:
                gaps.append((at, member.offset - at))
            at = member.offset + member.bytes
        return (*gaps, (at, self.bytes - at)) if self.bytes > at else tuple(gaps)


@dataclass(frozen=True, slots=True, eq=False)
class KernelProgram:
    """A parsed program: its kernels, and the records in buffers of any of them."""

    source: PlainSource
    program: SourceProgram
    kernels: tuple[Kernel, ...]
    records: tuple[BufferRecord, ...]

    def kernel(self, name: str) -> Kernel | None:
        """The kernel of that name."""
        return next((kernel for kernel in self.kernels if kernel.name == name), None)

    def records_of(self, kernel: Kernel) -> tuple[BufferRecord, ...]:
        """The records in the buffers of one kernel."""
        used = {parameter.record for parameter in kernel.parameters}
        return tuple(record for record in self.records if record.usr in used)
