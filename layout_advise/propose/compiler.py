"""The compiler of the program with its flags, by which mock-ups are compiled too."""

from __future__ import annotations

from dataclasses import dataclass, replace

from layout_advise.mockup.run.compilers import CompilerFamily, family


@dataclass(frozen=True, slots=True)
class Compiled:
    """Compiler and flags; ``short``: for a hotspot whose loop is a short one. ``last`` flags come after all others."""

    executable: str
    flags: tuple[str, ...]
    short: bool = False
    last: tuple[str, ...] = ()

    @property
    def family(self) -> CompilerFamily:
        """The family's flags."""
        return family(self.executable)

    @property
    def all_flags(self) -> tuple[str, ...]:
        """In the order in which the compiler gets them."""
        return (*self.flags, *self.last)

    def with_flags(self, extra: tuple[str, ...]) -> Compiled:
        """The same with further flags."""
        return replace(self, flags=(*self.flags, *extra))
