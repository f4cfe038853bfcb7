"""The lifted hotspot: structured, typed, with addresses as linear forms. What the emitters read.

Values are numbered. A value is defined once (``Let``, ``Load``, ``LiftedLoop.counter``, a live-in), a *variable* several
times (``Assign``); both are operands. Control is ``LiftedLoop`` (real ``for``), forward ``Goto``/``Label`` inside a body,
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

from layout_advise.mockup.ir.effects import Gpr, Lane, Ty


@dataclass(frozen=True, slots=True)
class Imm:
    """A constant; ``value`` is the bit pattern, unsigned."""

    ty: Ty
    value: int


@dataclass(frozen=True, slots=True)
class Val:
    """A value, defined once; the definition dominates every use."""

    number: int
    ty: Ty


@dataclass(frozen=True, slots=True)
class Var:
    """A variable, assigned on several paths (a phi that has no closed form)."""

    number: int
    ty: Ty


Operand = Imm | Val | Var


@dataclass(frozen=True, slots=True)
class Linear:
    """``const + sum(coef * atom)`` modulo 2**64; atoms are i64 operands, no atom twice, no coefficient 0."""

    const: int
    terms: tuple[tuple[Operand, int], ...] = ()


@dataclass(frozen=True, slots=True)
class LiveIn:
    """Value ``value`` is what ``location`` held at the entry (bit pattern reinterpreted as ``value.ty``).

    With ``half`` 0 or 1 it is that 32-bit half of the location.
    """

    value: Val
    location: Gpr | Lane
    half: int | None = None


@dataclass(frozen=True, slots=True)
class LiveOut:
    """``operand`` goes to ``location`` at the exit (return value: rax, xmm0; nothing else is compared for functions). Of a
    loop, ``read_at`` are the exits behind which it is read (None: all)."""

    operand: Operand
    location: Gpr | Lane
    half: int | None = None
    read_at: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """The instruction that a statement comes from. ``pc`` run-time address; ``pack`` equal for all lanes of one packed
    instruction's statement of the same kind (None for scalar instructions), ``lane`` the position in the pack: of elements
    of 32 bits that of the element, of loads and stores always that of the 64 bits around it. ``width`` is that of the pack
    in bytes. ``block`` is the flow graph's block: copies of an instruction (a callee lifted at several calls, a loop's half
    iteration before it) are in blocks of their own, and each executes the instruction anew."""

    pc: int
    pack: int | None = None
    lane: int = 0
    width: int = 0
    block: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Statement:
    """The base of all statements: a number, by which tables name them; no two of a :class:`Lifted` share one."""

    uid: int = field(default=-1, compare=False, repr=False, kw_only=True)
    """Given when the form is made (:func:`numbered`); -1 before. Statements that differ in it only are equal."""


@dataclass(frozen=True, slots=True)
class Let(Statement):
    """``value = name(args)``; names as in :class:`layout_advise.mockup.ir.effects.Op` (no flags, no cond)."""

    value: Val
    name: str
    args: tuple[Operand, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class LetLinear(Statement):
    """``value`` (i64) ``= linear``; integer arithmetic that stayed linear and is needed as a value."""

    value: Val
    linear: Linear
    origin: Origin


Executed = tuple[int, int, int]
"""(pc, operand, part): the traced reference that an access belongs to, and the access's distance from its address."""


@dataclass(frozen=True, slots=True)
class Load(Statement):
    """``value = *(ty *)address``; ``operand``/``part`` tie it to the traced reference (pc, operand), see LoadEffect.

    ``lanes`` is not empty in a rerolled loop (:mod:`layout_advise.mockup.rewrite.reroll`): in iteration k the access is
    that of ``lanes[k % len(lanes)]``; the first of them is its own; None: of no reference, the bytes were loaded by another
    lane. The iteration is that of the loop around, or of the one ``outward`` loops further out. ``turn`` is the iteration
    of the loops, outermost first, that were written out
    (:mod:`layout_advise.mockup.rewrite.unroll_field_loops`): each executes the reference anew; of what was kept from
    earlier iterations and is loaded again (:mod:`layout_advise.mockup.rewrite.reload_carried_values`) the last is how many,
    negative. ``guarded`` marks a lane of a masked load, which is jumped over where its mask forbids it.
    """

    value: Val
    address: Linear
    origin: Origin
    operand: int = 0
    part: int = 0
    lanes: tuple[Executed | None, ...] = ()
    turn: tuple[int, ...] = ()
    guarded: bool = False
    outward: int = 0


@dataclass(frozen=True, slots=True)
class Store(Statement):
    """``*(ty *)address = stored``; ``lanes``, ``turn`` and ``outward`` as for a :class:`Load`."""

    ty: Ty
    address: Linear
    stored: Operand
    origin: Origin
    operand: int = 0
    part: int = 0
    lanes: tuple[Executed | None, ...] = ()
    turn: tuple[int, ...] = ()
    outward: int = 0


@dataclass(frozen=True, slots=True)
class Assign(Statement):
    """``variable = operand``. Consecutive Assigns with the same ``group`` happen in parallel (phi moves)."""

    variable: Var
    operand: Operand
    group: int


@dataclass(frozen=True, slots=True)
class Call(Statement):
    """A call of a pure libm function (``exp``, ``sqrtf``...), or for the thread's number in its team: ``value =
    function(args)``."""

    value: Val
    function: str
    args: tuple[Operand, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class OpaqueCall(Statement):
    """A call of machine code that is not lifted (``function`` where the name is known), at address ``target``.

    ``args`` are the registers that may hold arguments; ``stack`` is the stack pointer at the call where the callee may look
    there. What it returns are the ``Let`` named ``returned.REGISTER`` that follow. Anything may be read and written.
    """

    function: str | None
    target: Operand
    stack: Operand | None
    args: tuple[tuple[Gpr | Lane, Operand], ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Atomic(Statement):
    """``*(ty *)address`` is replaced in one step that no other thread sees half of. ``operation`` is ``add``, ``sub``,
    ``and``, ``or``, ``xor`` (with ``args[0]``), ``xchg`` (by it) or ``cas``: by ``args[1]`` where it equals ``args[0]``.
    What stood there is the ``Let`` named ``given.before`` that follows. The rest as for a :class:`Load`.
    """

    ty: Ty
    operation: str
    address: Linear
    args: tuple[Operand, ...]
    origin: Origin
    operand: int = 0
    part: int = 0
    lanes: tuple[Executed | None, ...] = ()
    turn: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefetch(Statement):
    """The cache is told that ``address`` will be accessed, which may be none; ``hint`` as in
    :class:`layout_advise.mockup.ir.effects.PrefetchEffect`."""

    address: Linear
    hint: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class RuntimeCall(Statement):
    """A call of OpenMP's runtime (:mod:`layout_advise.mockup.machine.openmp_runtime`): threads wait for each other in it,
    or ask for work.

    ``args`` are what it is handed, in the order of its parameters. Where it has ``places``, its parameters that are pointers
    point to so many variables: their arguments are what these hold before (those of gcc's runtime have none). What it gives
    are the ``Let`` named ``given.0`` (its result) and ``given.1``... (what the variables hold then) that follow. Other
    threads' stores may show after it.
    """

    function: str
    args: tuple[Operand, ...]
    places: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class Goto(Statement):
    """Forward jump to ``label`` (in the same or an enclosing body; out of a loop too) when ``condition`` (i1) holds."""

    label: int
    condition: Operand | None


@dataclass(frozen=True, slots=True)
class Label(Statement):
    """Target of Gotos."""

    number: int


ANOTHER_CALLEE = "it calls another function than in the calls looked at"
"""The reason of a way that ends at a call through a pointer, whose callees that were seen are inlined."""


@dataclass(frozen=True, slots=True)
class WayEnd(Statement):
    """The program does not go on, or does so on a way that begins at ``pc`` and that no compared call took: a mock-up that
    comes here ends its process. ``reason`` tells of such a way what could not be lifted on it; it is empty where the machine
    code itself does not go on (after a call of ``abort``). ``rejoins`` are the heads of the loops that the program would
    come back to, having done no more than to choose other values."""

    pc: int
    reason: str = ""
    rejoins: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class LiftedLoop(Statement):
    """``for (counter = 0; counter < trip; ++counter) body``; ``trip`` None: for(;;), left by a Goto.

    ``counter`` is i64 and defined inside the body only; what must be known after the loop is in variables or is linear in
    ``trip``. ``trip`` is a value computed before the loop, at least 0 (signed). ``head`` is the run-time address of the
    loop's first instruction. ``independent`` tells that no iteration stores what another one loads or stores; ``abreast``
    the same of a loop around others that are not independent: its iterations may run side by side. ``known`` tells of an
    independent loop that the original's compiler knew it: it ran iterations side by side that reach memory irregularly,
    which no check at run time could have shown to be apart.
    """

    counter: Val
    trip: Operand | None
    body: tuple[Item, ...]
    head: int
    independent: bool = False
    abreast: bool = False
    known: bool = False


Item = (
    Let
    | LetLinear
    | Load
    | Store
    | Atomic
    | Prefetch
    | Assign
    | Call
    | OpaqueCall
    | RuntimeCall
    | Goto
    | Label
    | WayEnd
    | LiftedLoop
)


@dataclass(frozen=True, slots=True)
class Lifted:
    """A whole hotspot. Addresses are run-time addresses of the parked process.

    ``skipped`` are the memory references (pc, operand) that the lifted code does not execute, with the reason: loads whose
    lanes nobody reads, and accesses to the hotspot's own frame that became variables. ``thinned`` are those that it executes
    in some copies of their code only: a callee is inlined several times, and the value is not used each time. ``native`` is
    the code (start, end) that calls which stay calls may run.
    """

    symbol: str
    entry: int
    live_ins: tuple[LiveIn, ...]
    live_outs: tuple[LiveOut, ...]
    body: tuple[Item, ...]
    skipped: tuple[tuple[int, int, Literal["dead", "frame"]], ...] = ()
    thinned: tuple[tuple[int, int], ...] = ()
    native: tuple[tuple[int, int], ...] = ()
    with_pointers: Callable[[], Lifted | None] | None = field(default=None, compare=False)
    """Makes :attr:`as_pointers`, which takes as long as lifting does."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", numbered(self.body))

    @property
    def as_pointers(self) -> Lifted | None:
        """The same with the pointers that loops carry, where ``body`` has indices in their place
        (``mockup/lift/loops/carried_pointers.py``): in the original's layout an address of an index has to be computed; and
        with the instructions that are loops in ``body`` (``rep movs``)."""
        return self.with_pointers() if self.with_pointers is not None else None

    def runs_natively(self, pc: int) -> bool:
        """Returns whether a call that stays a call may run the original's instruction at ``pc``."""
        return any(start <= pc < end for start, end in self.native)


def first_free_uid(lifted: Lifted) -> int:
    """Returns a number above those of all statements."""
    return max((item.uid for item in everything(lifted.body)), default=-1) + 1


def numbered(body: tuple[Item, ...]) -> tuple[Item, ...]:
    """Returns the statements of ``body``, each with a number of its own.

    A statement keeps the number that it has. Those without one, and copies of one before them, get the next free ones.
    """
    uids = [item.uid for item in everything(body)]
    if min(uids, default=0) >= 0 and len(set(uids)) == len(uids):
        return body
    return _numbered(body, count(max(uids) + 1), set())


def _numbered(items: Sequence[Item], fresh: Iterator[int], taken: set[int]) -> tuple[Item, ...]:
    found: list[Item] = []
    for item in items:
        if item.uid < 0 or item.uid in taken:
            item = replace(item, uid=next(fresh))
        taken.add(item.uid)
        found.append(replace(item, body=_numbered(item.body, fresh, taken)) if isinstance(item, LiftedLoop) else item)
    return tuple(found)


def everything(items: Sequence[Item]) -> Iterator[Item]:
    """All statements of a body, loops before what is in them."""
    for item in items:
        yield item
        if isinstance(item, LiftedLoop):
            yield from everything(item.body)
