"""The files that a process has mapped, and what lies where in its memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from layout_advise.errors import BinaryError
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Mapping

KERNEL_START = 1 << 63


@dataclass(frozen=True, slots=True)
class Module:
    """A program or library in a process: file address + ``load_base`` = run-time address."""

    binary: ElfBinary
    load_base: int


class Modules:
    """Opens the mapped files on demand and keeps them."""

    def __init__(self, mappings: Sequence[Mapping], *known: ElfBinary) -> None:
        self.mappings = tuple(sorted(mappings, key=lambda m: m.start))
        self._starts = [m.start for m in self.mappings]
        self._apart = all(one.end <= other.start for one, other in pairwise(self.mappings))
        self._of_file: defaultdict[str, list[Mapping]] = defaultdict(list)
        for mapping in self.mappings:
            self._of_file[mapping.path].append(mapping)
        self._known = {str(b.path.resolve()): b for b in known}
        self._modules: dict[str, Module | None] = {}

    def mapping_at(self, address: int) -> Mapping | None:
        """The mapping that holds ``address``."""
        if not self._apart:  # seen at several times
            return next((m for m in self.mappings if m.start <= address < m.end), None)
        before = self._number(address)
        return self.mappings[before] if before >= 0 and address < self.mappings[before].end else None

    def _number(self, address: int) -> int:
        """The number of the last mapping that begins at or before ``address``; -1 where there is none."""
        return bisect_right(self._starts, address) - 1

    def module(self, path: str) -> Module | None:
        """The module of a mapping's path; ``None`` where the file is gone, damaged or no ELF file."""
        if path not in self._modules:
            self._modules[path] = self._open(path)
        return self._modules[path]

    def module_at(self, address: int) -> Module | None:
        """The module whose file is mapped at ``address``, or whose ``.bss`` lies there."""
        mapping = self.mapping_at(address)
        if mapping is None:
            return None
        # the part of .bss beyond the file's last page is an anonymous mapping after those of the file
        if not mapping.path:
            number = self._number(mapping.start - 1)
            before = self.mappings[number] if number >= 0 else None
            if before is None or before.end != mapping.start or not before.path.startswith("/"):
                return None
            found = self.module(before.path)
            inside = found is not None and found.binary.section_at(address - found.load_base) is not None
            return found if inside else None
        return self.module(mapping.path)

    def _open(self, path: str) -> Module | None:
        if not path.startswith("/"):
            return None
        binary = self._known.get(path.removesuffix(" (deleted)"))
        try:
            binary = binary or ElfBinary.open_module(path)
        except BinaryError:
            return None
        base = binary.load_base(self._of_file[path])
        return Module(binary, base) if base is not None else None
