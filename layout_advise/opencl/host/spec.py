"""A launch described in a file: ``layout-advise opencl --kernel k.cl --spec args.toml``.

kernel = "step"             # may be left out where there is one
global = [65536]
local = [64]                # may be left out
options = "-DN=65536"
calls = 100                 # launches while the buffers stay on the device

[[args]]
buffer = "particles"        # buffers of one name are one buffer
count = 65536               # elements of the parameter's type, or bytes = ..., or file = "data.bin"
fill = "random"             # or "zero", or a number for each scalar; random is between low and high
[[args]]
value = 65536               # of the parameter's type
[[args]]
local = 256                 # bytes of local memory
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import UsageError
from layout_advise.opencl.host.launch import Argument, BufferArgument, Bytes, Launch, LocalArgument, ValueArgument
from layout_advise.opencl.source.kernels import Kernel, KernelParameter, KernelProgram
from layout_advise.opencl.source.read import read_program

SEED = 2015
_KEYS = {"kernel", "global", "local", "offset", "options", "calls", "args"}
_DTYPES = {"float": "f4", "double": "f8", "half": "f2", "char": "i1", "uchar": "u1", "unsigned char": "u1", "short": "i2",
           "ushort": "u2", "unsigned short": "u2", "int": "i4", "uint": "u4", "unsigned int": "u4", "long": "i8",
           "ulong": "u8", "unsigned long": "u8"}  # fmt: skip


_Number = int | float
_Size = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class _ArgumentGiven(msgspec.Struct, frozen=True):
    """One ``[[args]]`` as written."""

    buffer: str | int | None = None
    value: _Number | list[_Number] | None = None
    local: _Size | None = None
    count: _Size = 0
    bytes: _Size | None = None
    file: str | None = None
    fill: Literal["random", "zero"] | _Number = "random"
    low: _Number = 0
    high: _Number | None = None


class _WrittenSpec(msgspec.Struct, frozen=True, rename={"work_items": "global", "group": "local"}):
    """The whole file as written."""

    kernel: str | None = None
    work_items: _Size | list[_Size] | None = None
    group: _Size | list[_Size] | None = None
    offset: _Size | list[_Size] | None = None
    options: str = ""
    calls: Annotated[int, msgspec.Meta(ge=1)] = 1
    args: tuple[_ArgumentGiven, ...] = ()


@dataclass(slots=True)
class _Buffers:
    """Buffers by name, in the order in which they are first named."""

    names: list[str] = field(default_factory=list)
    data: list[Bytes] = field(default_factory=list)


def read_spec(kernel_file: Path, spec_file: Path, options: str = "") -> Launch:
    """The launch that a file describes. Raises UsageError where it does not fit the kernel."""
    try:
        source = kernel_file.read_text(encoding="latin-1")
        written = tomllib.loads(spec_file.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}", error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or too deep
        raise UsageError(f"cannot read {spec_file}", str(error)) from error
    if unknown := sorted(written.keys() - _KEYS):
        raise UsageError(f"cannot read {spec_file}", f"no such key: {unknown[0]}", f"there are {', '.join(sorted(_KEYS))}")
    try:
        spec = msgspec.convert(written, _WrittenSpec)
    except msgspec.ValidationError as error:
        raise UsageError(f"cannot read {spec_file}", str(error)) from error
    options = f"{spec.options} {options}".strip()
    program = read_program(source, options, kernel_file.name)
    kernel = _kernel(program, spec.kernel, kernel_file)
    given = spec.args
    if len(given) != len(kernel.parameters):
        why = f"{spec_file} has {len(given)} args, the kernel {len(kernel.parameters)} parameters"
        raise UsageError(f"the arguments of kernel {kernel.name} do not fit", why, "one [[args]] for each parameter")
    buffers = _Buffers()
    pairs = zip(kernel.parameters, given, strict=True)
    arguments = tuple(_argument(program, p, one, buffers, spec_file) for p, one in pairs)
    return Launch(
        source,
        options,
        kernel.name,
        arguments,
        tuple(buffers.data),
        _sizes(spec.work_items, "global", spec_file) or (1,),
        _sizes(spec.group, "local", spec_file),
        _sizes(spec.offset, "offset", spec_file),
        spec.calls,
        kernel_file.name,
    )


def _kernel(program: KernelProgram, name: str | None, file: Path) -> Kernel:
    if name is None and len(program.kernels) == 1:
        return program.kernels[0]
    found = program.kernel(name or "")
    if found is None:
        known = ", ".join(kernel.name for kernel in program.kernels) or "none"
        raise UsageError(f"no kernel {name or 'is chosen'} in {file}", f"its kernels: {known}", "set kernel in the spec")
    return found


def _sizes(value: int | list[int] | None, key: str, file: Path) -> tuple[int, ...] | None:
    if value is None:
        return None
    sizes = value if isinstance(value, list) else [value]
    if not 1 <= len(sizes) <= 3:
        raise UsageError(f"cannot read {file}", f"{key} must be one to three numbers")
    return tuple(sizes)


def _argument(
    program: KernelProgram, parameter: KernelParameter, given: _ArgumentGiven, buffers: _Buffers, file: Path
) -> Argument:
    what = f"{file} does not fit the kernel"
    if parameter.form == "local" and given.local is not None:
        return LocalArgument(given.local)
    if parameter.form == "value" and given.value is not None:
        return ValueArgument(_value(parameter, given.value, what))
    if parameter.form != "buffer" or given.buffer is None:
        wanted = parameter.form if parameter.form in ("buffer", "local", "value") else "what cannot be described here"
        raise UsageError(what, f"parameter {parameter.name} ({parameter.text}) needs {wanted}")
    name = str(given.buffer)
    if name not in buffers.names:
        buffers.names.append(name)
        buffers.data.append(_content(program, parameter, given, len(buffers.names), file))
    return BufferArgument(buffers.names.index(name))


def _value(parameter: KernelParameter, value: _Number | list[_Number], what: str) -> bytes:
    kind = scalar_type(parameter.text)
    if kind is None:
        raise UsageError(what, f"parameter {parameter.name} is {parameter.text}, no number")
    try:
        with np.errstate(all="ignore"):
            data = np.asarray(value, dtype=kind).tobytes()
    except (ValueError, OverflowError) as error:
        raise UsageError(what, f"parameter {parameter.name} is {parameter.text}: {error}") from error
    if len(data) > parameter.element_bytes:
        raise UsageError(what, f"parameter {parameter.name} is {parameter.text}, which has no room for {value}")
    return data.ljust(parameter.element_bytes, b"\0")


def scalar_type(text: str) -> np.dtype[Any] | None:
    """The NumPy type of a scalar of OpenCL C, or of a vector's components."""
    words = [
        w for w in text.replace("*", " ").split() if w not in ("const", "volatile", "restrict") and not w.startswith("__")
    ]
    name = " ".join(words).rstrip("0123456789")
    return np.dtype(_DTYPES[name]) if name in _DTYPES else None


def _content(program: KernelProgram, parameter: KernelParameter, given: _ArgumentGiven, number: int, file: Path) -> Bytes:
    if given.file is not None:
        path = file.parent / given.file
        try:
            return np.fromfile(path, dtype=np.uint8)
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read {path}", getattr(error, "strerror", None) or str(error)) from error
    size = given.bytes if given.bytes is not None else given.count * parameter.element_bytes
    what = f"{file} does not fit the kernel"
    if size <= 0:
        raise UsageError(what, f"buffer {given.buffer} has no count, bytes or file")
    if size > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise UsageError(what, f"buffer {given.buffer} would have {size:,} bytes, more than this machine's memory")
    try:
        data = np.zeros(size, dtype=np.uint8)
        if given.fill != "zero":
            with np.errstate(all="ignore"):
                _filled(program, parameter, data, given, np.random.default_rng(SEED + number))
    except (ValueError, OverflowError, MemoryError) as error:
        raise UsageError(
            what, f"buffer {given.buffer} cannot be filled ({error})", "change fill, low, high or count"
        ) from error
    return data


def _filled(
    program: KernelProgram, parameter: KernelParameter, data: Bytes, given: _ArgumentGiven, random: np.random.Generator
) -> None:
    """Numbers in every scalar of a buffer; what is of no known type stays zero."""
    record = next((one for one in program.records if one.usr == parameter.record), None)
    if record is None:
        kind = scalar_type(parameter.text)
        if kind is not None:
            whole = len(data) // kind.itemsize * kind.itemsize
            data[:whole] = _numbers(kind, whole // kind.itemsize, given, random).view(np.uint8)
        return
    rows = data[: len(data) // record.bytes * record.bytes].reshape(-1, record.bytes)
    for member in record.members:
        kind = scalar_type(member.type.split("[")[0])
        if kind is not None:
            count = member.bytes // kind.itemsize
            numbers = _numbers(kind, len(rows) * count, given, random).reshape(len(rows), count)
            rows[:, member.offset : member.offset + count * kind.itemsize] = numbers.view(np.uint8)


def _numbers(kind: np.dtype[Any], count: int, given: _ArgumentGiven, random: np.random.Generator) -> NDArray[Any]:
    if given.fill != "random":
        return np.full(count, given.fill, dtype=kind)
    low, high = given.low, given.high if given.high is not None else 1 if kind.kind == "f" else 100
    if kind.kind == "f":
        return random.uniform(low, high, count).astype(kind)
    return random.integers(int(low), max(int(high), int(low) + 1), count).astype(kind)
