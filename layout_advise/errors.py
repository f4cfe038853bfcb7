"""The one family of errors that a user may see.

Every error says, in one line, *what* could not be done, *why*, and *what to do*. It is raised anywhere
and caught once, in :func:`layout_advise.cli.main`. This module imports nothing, so that every package may
import it (``docs/decisions/0001-errors-are-a-leaf.md``).
"""

from __future__ import annotations


class LayoutAdviseError(Exception):
    """Something could not be done; ``str()`` is the line that the user reads."""

    exit_code = 1

    def __init__(self, what: str, why: str = "", hint: str = "") -> None:
        self.what = what
        self.why = why
        self.hint = hint
        super().__init__(self.line())

    def line(self) -> str:
        """The error in one line: ``what: why; hint``."""
        text = f"{self.what}: {self.why}" if self.why else self.what
        text = f"{text}; {self.hint}" if self.hint else text
        return " ".join(text.split())


class UsageError(LayoutAdviseError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_code = 2


class MachineError(LayoutAdviseError):
    """This machine lacks something; ``layout-advise doctor`` says what and how to get it."""

    exit_code = 4


class BinaryError(LayoutAdviseError):
    """The program's file cannot be analysed (not an ELF, 32-bit, static, setuid, ...)."""


class ProgramError(LayoutAdviseError):
    """The program under study did not do what the run needs (crashed, hung, never reached the hotspot)."""


class NeverCalledError(ProgramError):
    """The program ran, and never came to the region."""


class OvertimeError(ProgramError):
    """The program did not come to its end in time, and was killed."""


class SnapshotError(LayoutAdviseError):
    """Parking, dumping or restoring the program failed."""


class EntryError(SnapshotError):
    """The program cannot be stopped where the region is entered; in what calls it, it may be."""


class HungError(SnapshotError):
    """The stopped program did not answer in time, and was killed."""


class SettleError(SnapshotError):
    """Short calls cannot be repeated with what the program writes between them."""


class TooMuchWrittenError(SettleError):
    """The program writes more between so many calls than is kept; of fewer of them it may be kept."""


class TraceError(LayoutAdviseError):
    """The trace could not be recorded, written or read."""


class RefusedError(TraceError):
    """A tracing backend cannot trace this code; another one may."""


class AlgebraError(LayoutAdviseError):
    """A term does not parse, or a rule does not apply."""


class NotLiftedError(LayoutAdviseError):
    """A piece of machine code could not be turned into C.

    ``address`` is the run-time address of the instruction, ``instruction`` its text.
    """

    def __init__(self, address: int, instruction: str, reason: str) -> None:
        self.address = address
        self.instruction = instruction
        self.reason = reason
        super().__init__(f"not lifted: {instruction} at {address:#x}", reason)


class InvalidFormError(LayoutAdviseError):
    """The lifted form of a hotspot is not valid after a pass: a fault of this program."""

    def __init__(self, after: str, fault: str) -> None:
        super().__init__(f"the lifted form is not valid after {after}", fault, "please report this with the program")


class RemapError(LayoutAdviseError):
    """A lifted hotspot cannot be moved onto a candidate layout."""


class RowsError(RemapError):
    """Of an access to a grid it is not known in which row it goes to an element."""


class NotVectorisedError(LayoutAdviseError):
    """The iterations of a loop cannot be run side by side in the lanes of vector registers."""


class ReplayError(LayoutAdviseError):
    """The accesses of a hotspot cannot be replayed, or not in a candidate layout."""


class RunDirError(LayoutAdviseError):
    """The run directory is missing, complete already, foreign, or from another version."""


class SourceError(LayoutAdviseError):
    """Source cannot be read, or cannot be rewritten safely."""


class MockupError(LayoutAdviseError):
    """A mock-up could not be built, loaded or called in this process."""
