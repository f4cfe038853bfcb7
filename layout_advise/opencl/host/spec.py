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

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


@dataclass(slots=True)
class _Buffers:
    """Buffers by name, in the order in which they are first named."""

    names: list[str] = field(default_factory=list)
    data: list[Bytes] = field(default_factory=list)


def read_spec(kernel_file: Path, spec_file: Path, options: str = "") -> Launch:
    """The launch that a file describes. Raises UsageError where it does not fit the kernel."""
    try:
        source = kernel_file.read_text(encoding="latin-1")
        spec = tomllib.loads(spec_file.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}", error.strerror or str(error)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {spec_file}", str(error)) from error
    if unknown := sorted(spec.keys() - _KEYS):
        raise UsageError(f"cannot read {spec_file}", f"no such key: {unknown[0]}", f"there are {', '.join(sorted(_KEYS))}")
    options = f"{spec.get('options', '')} {options}".strip()
    program = read_program(source, options, kernel_file.name)
    kernel = _kernel(program, spec.get("kernel"), kernel_file)
    given = spec.get("args", [])
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
        _sizes(spec, "global", spec_file) or (1,),
        _sizes(spec, "local", spec_file),
        _sizes(spec, "offset", spec_file),
        int(spec.get("calls", 1)),
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


def _sizes(spec: Mapping[str, Any], key: str, file: Path) -> tuple[int, ...] | None:
    value = spec.get(key)
    if value is None:
        return None
    sizes = value if isinstance(value, list) else [value]
    if not 1 <= len(sizes) <= 3 or not all(isinstance(n, int) and n >= 0 for n in sizes):
        raise UsageError(f"cannot read {file}", f"{key} must be one to three numbers")
    return tuple(sizes)


def _argument(
    program: KernelProgram, parameter: KernelParameter, given: Mapping[str, Any], buffers: _Buffers, file: Path
) -> Argument:
    wanted = {"buffer": "buffer", "local": "local", "value": "value"}.get(parameter.form)
    if wanted is None or wanted not in given:
        why = f"parameter {parameter.name} ({parameter.text}) needs {wanted or 'what cannot be described here'}"
        raise UsageError(f"{file} does not fit the kernel", why)
    if parameter.form == "local":
        return LocalArgument(int(given["local"]))
    if parameter.form == "value":
        return ValueArgument(_value(parameter, given["value"], file))
    name = str(given["buffer"])
    if name not in buffers.names:
        buffers.names.append(name)
        buffers.data.append(_content(program, parameter, given, len(buffers.names), file))
    return BufferArgument(buffers.names.index(name))


def _value(parameter: KernelParameter, value: Any, file: Path) -> bytes:
    kind = scalar_type(parameter.text)
    if kind is None:
        raise UsageError(f"{file} does not fit the kernel", f"parameter {parameter.name} is {parameter.text}, no number")
    data = np.asarray(value, dtype=kind).tobytes()
    return data.ljust(parameter.element_bytes, b"\0")


def scalar_type(text: str) -> np.dtype[Any] | None:
    """The NumPy type of a scalar of OpenCL C, or of a vector's components."""
    words = [
        w for w in text.replace("*", " ").split() if w not in ("const", "volatile", "restrict") and not w.startswith("__")
    ]
    name = " ".join(words).rstrip("0123456789")
    return np.dtype(_DTYPES[name]) if name in _DTYPES else None


def _content(program: KernelProgram, parameter: KernelParameter, given: Mapping[str, Any], number: int, file: Path) -> Bytes:
    if "file" in given:
        path = file.parent / str(given["file"])
        try:
            return np.fromfile(path, dtype=np.uint8)
        except OSError as error:
            raise UsageError(f"cannot read {path}", error.strerror or str(error)) from error
    size = int(given.get("bytes", int(given.get("count", 0)) * parameter.element_bytes))
    if size <= 0:
        raise UsageError(f"{file} does not fit the kernel", f"buffer {given['buffer']} has no count, bytes or file")
    data = np.zeros(size, dtype=np.uint8)
    if given.get("fill", "random") != "zero":
        _filled(program, parameter, data, given, np.random.default_rng(SEED + number))
    return data


def _filled(
    program: KernelProgram, parameter: KernelParameter, data: Bytes, given: Mapping[str, Any], random: np.random.Generator
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


def _numbers(kind: np.dtype[Any], count: int, given: Mapping[str, Any], random: np.random.Generator) -> NDArray[Any]:
    fill = given.get("fill", "random")
    if fill != "random":
        return np.full(count, fill, dtype=kind)
    low, high = given.get("low", 0), given.get("high", 1 if kind.kind == "f" else 100)
    if kind.kind == "f":
        return random.uniform(low, high, count).astype(kind)
    return random.integers(int(low), max(int(high), int(low) + 1), count).astype(kind)
