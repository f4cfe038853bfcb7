"""One launch of a kernel as data: the program's source, the kernel, what it was given, and over which range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import UsageError
from layout_advise.opencl.source.kernels import Kernel, KernelProgram

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """A buffer, by its number among those of the launch: two parameters may be given the same one."""

    number: int


@dataclass(frozen=True, slots=True)
class LocalArgument:
    """Local memory of so many bytes."""

    bytes: int


@dataclass(frozen=True, slots=True)
class ValueArgument:
    """A value, as the bytes that the host gave."""

    data: bytes


Argument = BufferArgument | LocalArgument | ValueArgument


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """A launch. ``calls`` is how often the program makes it while its buffers stay on the device."""

    source: str
    options: str
    kernel: str
    arguments: tuple[Argument, ...]
    buffers: tuple[Bytes, ...] = field(repr=False)
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None = None
    offset: tuple[int, ...] | None = None
    calls: int = 1
    name: str = "kernel.cl"
    """The file of the source, for messages."""

    def of_group(self, size: tuple[int, ...] | None) -> Launch:
        """The same with another work-group size."""
        return replace(self, local_size=size)


def numbers_of_record(program: KernelProgram, launch: Launch, usr: str) -> tuple[int, ...]:
    """The buffers of a launch that hold a record."""
    kernel = checked_kernel(program, launch)
    pairs = zip(kernel.parameters, launch.arguments, strict=True)
    found = (a.number for p, a in pairs if isinstance(a, BufferArgument) and p.record == usr)
    return tuple(dict.fromkeys(found))


def checked_kernel(program: KernelProgram, launch: Launch) -> Kernel:
    """The kernel of a launch. Raises UsageError where there is none, or the arguments do not fit."""
    kernel = program.kernel(launch.kernel)
    if kernel is None:
        known = ", ".join(one.name for one in program.kernels) or "none"
        raise UsageError(f"no kernel {launch.kernel} in {launch.name}", f"its kernels: {known}")
    if len(kernel.parameters) != len(launch.arguments):
        why = f"it has {len(kernel.parameters)} parameters, {len(launch.arguments)} arguments are given"
        raise UsageError(f"the arguments of kernel {kernel.name} do not fit", why, "name one for each parameter")
    forms = {BufferArgument: "buffer", LocalArgument: "local", ValueArgument: "value"}
    for parameter, argument in zip(kernel.parameters, launch.arguments, strict=True):
        if parameter.form == "other":
            what = f"cannot lay out the buffers of kernel {kernel.name}"
            raise UsageError(what, f"parameter {parameter.name} is an image, a pipe or a sampler", "leave it as it is")
        if forms[type(argument)] != parameter.form:
            if parameter.form == "buffer" and isinstance(argument, LocalArgument):
                raise UsageError(f"the arguments of kernel {kernel.name} do not fit", f"{parameter.name} is given no buffer")
            why = f"parameter {parameter.name} is a {parameter.form}, a {forms[type(argument)]} is given"
            raise UsageError(f"the arguments of kernel {kernel.name} do not fit", why)
    return kernel


def mixed_buffers(program: KernelProgram, launches: Sequence[Launch]) -> Mapping[str, str]:
    """Records, by USR, whose buffers some parameter takes for something else, with the reason."""
    found: dict[str, str] = {}
    for launch in launches:
        kernel = checked_kernel(program, launch)
        seen: dict[int, str] = {}
        for parameter, argument in zip(kernel.parameters, launch.arguments, strict=True):
            if not isinstance(argument, BufferArgument):
                continue
            before = seen.setdefault(argument.number, parameter.record)
            for usr in {before, parameter.record} - {""} if before != parameter.record else ():
                found[usr] = f"{kernel.name} takes one buffer of it for two types"
    return found
