"""Mock-ups built and loaded into this process, to be called on NumPy arrays: on data outside a snapshot, and in tests.

A mock-up has the addresses of the snapshot in it that it was made from. The arrays are copied to these addresses for the
call, so that registers and pointers of the snapshot stay valid. With ``lifted``, ``candidate``, ``trace`` and ``structure``
of a hotspot ``move(particles, n, dt)`` (or with the text of a file in ``mockups/``, the structure of its candidate in
``candidates.json`` and the registers of the run's trace):

>>> import numpy as np
>>> from layout_advise.mockup.emit import EmitSettings, emit
>>> from layout_advise.mockup.run.load import arguments, compile_mockup
>>> text = emit(lifted, candidate, trace, [structure], EmitSettings()).text
>>> mockup = compile_mockup(text, folder / "c1.so", [structure])
>>> particles = np.ones((structure.count, 10))  # x y z vx vy vz and four more
>>> done = mockup({"particles": particles}, arguments((structure.base, structure.count), (0.5,)))
>>> particles[0, :4].tolist()
[1.5, 1.5, 1.5, 1.0]
>>> mockup.buffers[0].view(np.float64)[:3].tolist()  # x, a structure of arrays
[1.5, 1.5, 1.5]
>>> mockup({"particles": particles[:5]}, done.registers)
Traceback (most recent call last):
layout_advise.errors.MockupError: no call of the mock-up on particles: its array has 400 bytes, the structure 2,960
"""

from __future__ import annotations

import mmap
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cffi import FFI
from numpy.typing import NDArray

from layout_advise.errors import MockupError
from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.mockup.machine.call_abi import INTEGERS
from layout_advise.mockup.run.array_checks import unfit
from layout_advise.mockup.run.build import build
from layout_advise.mockup.run.fixed_addresses import at_addresses, bytes_at
from layout_advise.tracer.process.agent import ABI_HEADER
from layout_advise.tracer.trace.trace import Registers

_EXPORTS = """
extern uint32_t la_abi;
extern uint32_t la_buffer_count;
extern struct la_buffer_spec la_buffers[LA_MAX_BUFFERS];
void la_copy_in(struct la_context *);
void la_run(struct la_context *);
void la_copy_out(struct la_context *);
"""


@dataclass(frozen=True, slots=True)
class MockupCall:
    """What a call left: the registers, and of a check build its counts and its first ``records``, which are (address in the
    old layout) | site << 48."""

    registers: Registers
    records: NDArray[np.uint64]
    count: int
    mismatches: int
    remapped: int


class LoadedMockup:
    """A mock-up in this process. ``buffers`` are the bytes of the new layout, as the last call left them.

    Memory that the mock-up accesses and that no array of the call holds has to be where it was in the snapshot: like a C
    function with a wrong pointer, it crashes this process otherwise.
    """

    def __init__(self, path: Path, structures: Sequence[Structure] = (), *, fill: int = 0) -> None:
        """Loads the shared object ``path``, whose structures are ``structures``; the new buffers hold bytes ``fill``.

        Raises :class:`MockupError` where it is no mock-up of this version.
        """
        self.structures = tuple(structures)
        self._ffi, constants = _interface()
        self._library = _opened(self._ffi, path)
        if self._library.la_abi != constants["LA_ABI"]:
            why = f"its interface is {self._library.la_abi}, not {constants['LA_ABI']}"
            raise MockupError(f"{path.name} cannot be loaded", why, "build it anew")
        specs = [self._library.la_buffers[k] for k in range(self._library.la_buffer_count)]
        self.buffers = tuple(self._buffer(spec, fill) for spec in specs)

    def __call__(self, arrays: Mapping[str | int, NDArray[Any]], registers: Registers, *, records: int = 0) -> MockupCall:
        """Copies the arrays into the new layout, runs the hotspot once from ``registers`` on, and copies back.

        ``arrays`` has the block of each structure, by id or name: all its bytes (uint8), or numbers or records of the types
        that its fields have; and other memory by its address. Room for ``records`` is there for a check build. Raises
        :class:`MockupError` where an array is missing, read-only, not contiguous, or of another size or type.
        """
        blocks = self._blocks(arrays)
        kept = np.zeros(records, np.uint64)
        context = self._context(registers)
        context.check.records, context.check.capacity = self._ffi.cast("uint64_t *", kept.ctypes.data), records
        with at_addresses(blocks):
            self._library.la_copy_in(context)
            self._library.la_run(context)
            self._library.la_copy_out(context)
        check = context.check
        return MockupCall(
            _loaded(self._ffi, context.out), kept[: check.count], check.count, check.mismatches, check.remapped
        )

    def timed(self, arrays: Mapping[str | int, NDArray[Any]], registers: Registers, rounds: int) -> list[int]:
        """Times of so many calls one after another on the arrays in the new layout, in ns, without the copies; the arrays
        stay as they are. Raises as a call does."""
        blocks, context, times = self._blocks(arrays), self._context(registers), []
        with at_addresses(blocks):
            self._library.la_copy_in(context)
            for _ in range(rounds):
                begin = time.perf_counter_ns()
                self._library.la_run(context)
                times.append(time.perf_counter_ns() - begin)
        return times

    def _context(self, registers: Registers) -> Any:
        """What a mock-up is called with: its buffers and the registers."""
        context: Any = self._ffi.new("struct la_context *")
        context.abi, context.buffer_count = self._library.la_abi, len(self.buffers)
        for k, buffer in enumerate(self.buffers):
            context.buffers[k] = self._ffi.cast("uint8_t *", buffer.ctypes.data)
        _store(getattr(context, "in"), registers)
        return context

    def _buffer(self, spec: Any, fill: int) -> NDArray[np.uint8]:
        """At the wanted distance from the start of a page; an array of the mock-up's own where it has one."""
        if spec.own:
            return bytes_at(int(self._ffi.cast("uintptr_t", spec.own)) + spec.offset, spec.bytes)
        room = np.full(spec.bytes + spec.offset + mmap.PAGESIZE, fill, np.uint8)
        start = -room.ctypes.data % mmap.PAGESIZE + spec.offset
        return room[start : start + spec.bytes]

    def _blocks(self, arrays: Mapping[str | int, NDArray[Any]]) -> list[tuple[int, NDArray[Any]]]:
        """Addresses with what is to lie there."""
        left = dict(arrays)
        found: list[tuple[int, NDArray[Any]]] = []
        for structure in self.structures:
            key = structure.id if structure.id in left else structure.name
            if key not in left:
                raise _refused(structure.name, "it has no array")
            array = left.pop(key)
            why = unfit(structure, array)
            if why:
                raise _refused(structure.name, why)
            found.append((structure.block_base or structure.base, array))
        for address, array in left.items():
            if isinstance(address, str):
                raise _refused(address, f"its structures are {', '.join(s.name for s in self.structures) or 'none'}")
            if not array.flags.c_contiguous or array.dtype.hasobject:
                raise _refused(f"the memory at {address:#x}", "its array is not contiguous, or holds objects")
            found.append((address, array))
        return found


def compile_mockup(
    source: str,
    out: Path,
    structures: Sequence[Structure] = (),
    *,
    compiler: str = "gcc",
    flags: Sequence[str] = ("-O2",),
    fill: int = 0,
) -> LoadedMockup:
    """Builds the C text of a mock-up as the shared object ``out`` and loads it; see :class:`LoadedMockup`.

    Raises :class:`MockupError` with the compiler's first error where it does not compile.
    """
    built = build(source, out, compiler, flags)
    if built.path is None:
        raise MockupError(f"{out.name} cannot be built", built.reason or "")
    return LoadedMockup(built.path, structures, fill=fill)


def arguments(integers: Sequence[int] = (), floats: Sequence[float | np.floating[Any]] = ()) -> Registers:
    """The registers in which a function gets these arguments by the System V calling convention; a ``np.float32`` is passed
    as a float, other numbers as doubles. Raises :class:`MockupError` for arguments that go on the stack."""
    if len(integers) > len(INTEGERS) or len(floats) > 8:
        raise MockupError("too many arguments", "six integers and eight floats are passed in registers")
    gpr = [0] * 16
    for location, value in zip(INTEGERS, integers, strict=False):
        gpr[location.number] = int(value) % (1 << 64)
    vector = tuple(np.asarray(value).tobytes() for value in floats)
    return Registers(tuple(gpr), 0, 0, 0, 0, vector)


@cache
def _interface() -> tuple[FFI, dict[str, int]]:
    """The declarations of ``abi.h`` and of what a mock-up exports, and the header's numbers."""
    header = ABI_HEADER.read_text()
    constants = {name: int(value) for name, value in re.findall(r"^#define (LA_\w+) (\d+)u$", header, re.MULTILINE)}
    text = re.sub(r"^#.*$", "", header, flags=re.MULTILINE) + _EXPORTS
    for name, value in constants.items():
        text = text.replace(f"[{name}]", f"[{value}]")
    ffi = FFI()
    ffi.cdef(text)
    return ffi, constants


def _opened(ffi: FFI, path: Path) -> Any:
    """Loaded from a copy: of a file that is loaded already the loader gives the old content."""
    with tempfile.NamedTemporaryFile(prefix=path.stem, suffix=".so") as copy:
        try:
            copy.write(path.read_bytes())
            copy.flush()
            library: Any = ffi.dlopen(copy.name)
            _ = library.la_abi, library.la_run
        except OSError as error:
            raise MockupError(f"{path.name} cannot be loaded", str(error)) from error
        except (AttributeError, KeyError) as error:
            raise MockupError(
                f"{path.name} cannot be loaded", "it exports no la_abi or no la_run: it is no mock-up"
            ) from error
    return library


def _store(target: Any, registers: Registers) -> None:
    """Fill the C structure."""
    target.gpr = registers.gpr
    for name in ("rip", "rflags", "mxcsr", "fs_base"):
        setattr(target, name, getattr(registers, name))
    for k, content in enumerate(registers.vector):
        target.vector[k] = content.ljust(64, b"\0")


def _loaded(ffi: FFI, source: Any) -> Registers:
    """The C structure as a value."""
    vector = tuple(bytes(ffi.buffer(source.vector[k])) for k in range(32))
    return Registers(tuple(source.gpr), source.rip, source.rflags, source.mxcsr, source.fs_base, vector)


def _refused(name: str, why: str) -> MockupError:
    return MockupError(f"no call of the mock-up on {name}", why)
