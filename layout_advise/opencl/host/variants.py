"""A program in one layout, ready to run: source, and the launches with their buffers in that layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from layout_advise.opencl.host.launch import Argument, BufferArgument, Bytes, Launch, checked_kernel, numbers_of_record
from layout_advise.opencl.rewrite.layouts import BufferLayout
from layout_advise.opencl.rewrite.marshal import gathered, scattered, without_padding
from layout_advise.opencl.rewrite.rewrite import rewritten
from layout_advise.opencl.source.kernels import KernelProgram


@dataclass(frozen=True, slots=True, eq=False)
class KernelVariant:
    """One layout of the program. ``layouts`` is empty for the program as it is."""

    id: str
    layouts: tuple[BufferLayout, ...]
    source: str = field(repr=False)
    launches: tuple[Launch, ...] = field(repr=False)
    homes: tuple[tuple[tuple[BufferLayout | None, tuple[int, ...]], ...], ...] = field(repr=False)
    """By launch and buffer of the original: its layout, and the numbers of the buffers that hold it now."""

    def originals(self, launch: int, buffers: Sequence[Bytes], before: Launch) -> tuple[Bytes, ...]:
        """The buffers that a launch left, in the program's own layout; bytes that no member has are zero."""
        found = []
        for data, (layout, numbers) in zip(before.buffers, self.homes[launch], strict=True):
            if layout is None:
                found.append(buffers[numbers[0]])
            else:
                found.append(without_padding(layout.record, gathered(layout, [buffers[n] for n in numbers], data)))
        return tuple(found)


def original(launches: Sequence[Launch]) -> KernelVariant:
    """The program as it is."""
    homes = tuple(tuple((None, (n,)) for n in range(len(one.buffers))) for one in launches)
    return KernelVariant("original", (), launches[0].source, tuple(launches), homes)


def variant(name: str, program: KernelProgram, launches: Sequence[Launch], layouts: Sequence[BufferLayout]) -> KernelVariant:
    """The program with records in other layouts. Raises SourceError where its source cannot be rewritten."""
    new = rewritten(program, layouts)
    return written(name, program, launches, layouts, new.text, new.options)


def written(
    name: str, program: KernelProgram, launches: Sequence[Launch], layouts: Sequence[BufferLayout], source: str, options: str
) -> KernelVariant:
    """Source for records in other layouts, whoever wrote it: its kernels are given a buffer for each cluster in the place of
    each buffer of a record."""
    made = [_in_layouts(program, launch, layouts, source, options) for launch in launches]
    return KernelVariant(name, tuple(layouts), source, tuple(one for one, _ in made), tuple(homes for _, homes in made))


def _in_layouts(
    program: KernelProgram, launch: Launch, layouts: Sequence[BufferLayout], source: str, options: str
) -> tuple[Launch, tuple[tuple[BufferLayout | None, tuple[int, ...]], ...]]:
    by_buffer = {n: one for one in layouts for n in numbers_of_record(program, launch, one.record.usr)}
    buffers: list[Bytes] = []
    homes: list[tuple[BufferLayout | None, tuple[int, ...]]] = []
    for number, data in enumerate(launch.buffers):
        layout = by_buffer.get(number)
        parts = (data,) if layout is None else scattered(layout, data)
        homes.append((layout, tuple(range(len(buffers), len(buffers) + len(parts)))))
        buffers += parts
    arguments: list[Argument] = []
    for argument in launch.arguments:
        if isinstance(argument, BufferArgument):
            arguments += [BufferArgument(n) for n in homes[argument.number][1]]
        else:
            arguments.append(argument)
    checked_kernel(program, launch)
    made = replace(launch, source=source, options=options, arguments=tuple(arguments), buffers=tuple(buffers))
    return made, tuple(homes)
