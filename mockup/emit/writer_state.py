"""Texts of values and addresses, and the state that the writer's parts share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from layout_advise.layoutalgebra.derive.structure import Axis, Structure
from layout_advise.mockup.emit.arrays import FieldPointers
from layout_advise.mockup.emit.c_text import CTYPE, constant, integer, link_text
from layout_advise.mockup.emit.packs.byte_masks import ByteMask
from layout_advise.mockup.emit.scope import Names, Scope
from layout_advise.mockup.emit.simd.chosen_loops import SimdLoops
from layout_advise.mockup.evidence.binding import Binding
from layout_advise.mockup.ir.lifted import Imm, Linear, Operand, Val, Var
from layout_advise.mockup.remap.entered_indices import Entered, EnteredCode
from layout_advise.mockup.remap.links import NO_LINKS, Links, OnePiece, is_null
from layout_advise.mockup.remap.sites import RemapPlan


@dataclass(frozen=True, slots=True)
class WriterContext:
    """The input of the writers of one mock-up, which they never change; accesses and loops go by their statement numbers."""

    scope: Scope
    plan: RemapPlan
    binding: Binding
    check: bool
    wrong: frozenset[int]
    """The accesses that get the deliberately wrong map."""
    altered: frozenset[int]
    """The loads of which all bits are others on purpose."""
    recorders: Mapping[int, frozenset[int]]
    """By access, the lanes in which it stands for an execution of its reference (see ``Load.lanes``); check build."""
    pointers: FieldPointers
    maps: Mapping[str, str]
    """By structure id, the name of its map function (check build)."""
    watched: tuple[str, ...]
    """The map functions that must not know the places that no layout moves (:attr:`EmitSettings.ends`)."""
    registers: Mapping[int, int]
    """By number of a live-in value, what the traced call had there."""
    gathers: Mapping[int, list[tuple[Val, int]]]
    """By number of an index, (base, bytes an element) of the unchanged records that it picks (:func:`scope.gathers`)."""
    independent: bool
    """Whether the compiler is told which loops' iterations are independent."""
    counters: frozenset[Operand]
    """Of the loops. Where an access is not linear in these (an index is loaded), and arrays are not `restrict`, the compiler
    is kept from seeing how far their starting points are from each other, as in a function that gets several pointers."""
    unrelated: bool
    """Neighbours are not seen to be a constant apart where an index chooses between fields of a global."""
    known: frozenset[int]
    """The loops that it is told are independent anyway: it would know it of a source in this layout."""
    masks: Mapping[int, ByteMask]
    """By statement, what it is the last bit of."""
    simd: SimdLoops
    entered: Mapping[int, Entered]
    """By site, the indices that the call brings along."""
    kept: Mapping[int, Linear] = field(default_factory=dict)
    """By site, the place of the pointer that it starts from, which stays as it is (:mod:`~..remap.kept_pointers`)."""
    links: Links = NO_LINKS
    pieces: Mapping[str, OnePiece] = field(default_factory=dict)
    """By structure id the new elements that pointers lead to, as they would in a source."""
    prefetched: Mapping[int, str] = field(default_factory=dict)
    """By the address of a prefetch the structure (id) that it goes to, where that is known."""
    brought: Mapping[Val, EnteredCode] = field(default_factory=dict)
    """The codes of links that the call brings along, by the values at the entry."""
    again: frozenset[int] = frozenset()
    """The loads that are made where their values are used."""
    typed: frozenset[tuple[str, int]] = frozenset()
    """The fields (structure id, number) that are arrays of one type to the compiler, and not memory of any type."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Index ``atom`` (a value's number) of dimension ``dim``, cut as ``axes`` say, relative to a site."""

    site: int
    dim: int
    atom: int
    digit: int
    shift: int
    axes: tuple[Axis, ...]


class Text:
    """Lines and expressions; ``lines`` is the result. All state that the writers change is set here."""

    def __init__(self, context: WriterContext) -> None:
        self.context = context
        self.scope, self.plan, self.binding = context.scope, context.plan, context.binding
        self.names = dict(context.scope.names)
        """C names of values by number; the writers add those of what they define (:meth:`called`)."""
        self.given = Names(context.scope.given.taken | context.pointers.starts.keys() | set(context.maps.values()))
        """Where all names of the kernel come from."""
        self.lines: list[str] = []
        self.depth = 1
        """Of the indentation."""
        self.labels: dict[int, str] = {}
        """Names of labels in a second copy of a loop's body."""
        self.counting: list[str] = []
        """Names of the counters of the loops around."""
        self.strip: tuple[str, int, str] | None = None
        """Inside a strip-mined loop: number of the block, its size, lane."""
        self.branches = False
        """Whether the body of the loop around has branches."""
        self.copies = 0
        """How many bodies of loops were written a second time."""
        self.temporaries = 0
        """How many variables of the writer's own were declared."""
        self.calls = 0
        """How many calls of code that is not lifted were written."""
        self.by_record = False
        """Whether what the last of them returned is in a record."""
        self.sites_written: set[int] = set()
        self.same_site: dict[int, int] = {}
        """Sites of merged structures -> the site with the same index, whose digits and pointers they have."""
        self.pointers_written: set[str] = set()
        """Names of the pointers to where fields start at sites."""
        self.cuts: dict[Cut, str] = {}
        """Indices that are cut already -> their names."""
        self.elements: dict[tuple[str, str], str] = {}
        """(pointer to a field or record, text of an index in bytes) -> pointer to that element."""
        self.bases: dict[int, str] = {}
        """Live-in values that addresses start from -> name of the kernel's pointer parameter."""
        self.starts: dict[tuple[object, ...], Sequence[str]] = {}
        """Of pointers that stay where they are (structure, place, offset): the names of their digits, made once a call."""
        self.kept: dict[str, str] = {}
        """What is made of them -> where it is loaded from."""
        self.before: list[str] = []
        """Lines in front of all others, which make both."""
        self.hidden: dict[tuple[tuple[str, int], ...], str] = {}
        """What sites start from -> name of a zero that the compiler does not know (:meth:`Places.hide`)."""

    def put(self, text: str) -> None:
        """One line at the current indentation."""
        self.lines.append("    " * self.depth + text)

    def text(self, operand: Operand) -> str:
        """An operand; constants in full, values by name."""
        if isinstance(operand, Imm):
            return constant(operand)
        if isinstance(operand, Val):
            return self.called(operand)
        if (led := self.context.links.codes.get(operand)) is not None:
            decoded = self.coded("decode", self.code_name(operand), led)
            shift = self.context.links.shifts.get(operand, 0)
            return f"({decoded} + {shift})" if shift else decoded
        return self.variable(operand)

    def held(self, variable: Var) -> str:
        """The name of the C variable that stands for one: that of its code, of one that holds a link."""
        return self.code_name(variable) if variable in self.context.links.codes else self.text(variable)

    def variable(self, variable: Var) -> str:
        """The name of a variable that holds values, and not codes of links."""
        return self.given.of(("variable", variable.number), f"x{variable.number}")

    def code_name(self, operand: Val | Var) -> str:
        """The name of the code of a link that a value or a variable holds."""
        return self.given.of(("code", operand), f"code_{'x' if isinstance(operand, Var) else ''}{operand.number}")

    def code(self, operand: Operand, led: Structure, shift: int = 0, *, checked: bool = True) -> str:
        """The code of a pointer ``shift`` bytes behind the begin of an element of ``led``: known, or worked out by a
        division. One that the call brings along is ``checked`` to be one, where it may be stored: elsewhere an access by
        what is none faults."""
        links = self.context.links
        if isinstance(operand, Val | Var) and links.shifts.get(operand, 0) == shift:
            if links.codes.get(operand) is led:
                return self.code_name(operand)
            if isinstance(operand, Val) and (brought := self.context.brought.get(operand)) and brought.structure is led:
                return f"la_brought({self.brought_name(operand)})" if checked else self.brought_name(operand)
        if is_null(operand) and not shift:
            return "0"
        text = f"{self.text(operand)} - {shift}" if shift else self.text(operand)
        return self.coded("encode", text, led)

    def code_of(self, operand: Operand, led: Structure, shift: int) -> str:
        """The code that codes are compared with, made once in a call, of what stays the same in it: of what can be none, one
        that no link has."""
        if is_null(operand) and not shift:
            return "0"
        text = f"{self.text(operand)} - {shift}" if shift else self.text(operand)
        name = self.given.of(("code_of", operand, led.id, shift), "other")
        made = f"const int64_t {name} = {self.coded('code_of', text, led)};"
        if made not in self.before:
            self.before.append(made)
        return name

    def coded(self, way: str, text: str, led: Structure) -> str:
        """The code of a pointer to an element of ``led``, or the pointer of a code (:func:`~.c_text.link_text`)."""
        first = self.first_piece(led) if led.id in self.context.pieces else "1"
        return link_text(way, text, led, self.context.links.step(led), first)

    def first_piece(self, structure: Structure) -> str:
        """The new address of the first element of a structure whose elements lie in one piece."""
        pointers = self.context.pointers
        name = next(name for (one, _), name in sorted(pointers.names.items()) if one == structure.id)
        _, _, start = pointers.starts[name]
        return f"((int64_t){name} - {start})" if start else f"(int64_t){name}"

    def brought(self, operand: Operand) -> Structure | None:
        """The structure of whose elements the call brings along the code of one, for a value at the entry."""
        one = self.context.brought.get(operand) if isinstance(operand, Val) else None
        return one.structure if one is not None else None

    def entered_name(self, slot: int) -> str:
        """The name of a number that the call brings along, in a variable from its begin on, as an argument of a source."""
        return self.given.of(("entered", slot), f"entered_{slot}")

    def brought_name(self, value: Val) -> str:
        """The name of a code that the call brings along."""
        return self.given.of(("brought", value), f"brought_{value.number}")

    def called(self, value: Val, wanted: str = "") -> str:
        """Returns the name of ``value``; the first time that it is asked for one like ``wanted``."""
        if value.number not in self.names:
            self.names[value.number] = self.given.new(wanted or f"v{value.number}")
        return self.names[value.number]

    def temporary(self, letter: str) -> str:
        """Returns the name of one more variable of the writer's own."""
        self.temporaries += 1
        return self.given.new(f"{letter}{self.temporaries}")

    def digit(self, site: int, dim: int) -> str:
        """Returns the name of a site's index in one dimension."""
        site = self.same_site.get(site, site)
        return self.given.of(("digit", site, dim), f"d{site}_{dim}")

    def linear(self, linear: Linear, offset: int = 0, wide: bool = False) -> str:
        """A linear form. Signed, so that the compiler sees strides; ``wide``: modulo 2**64, for values."""
        parts: list[tuple[str, str]] = []
        for atom, coef in linear.terms:
            name = f"(uint64_t){self.text(atom)}" if wide else self.text(atom)
            signed = coef - (1 << 64) if coef >= 1 << 63 else coef
            sign, size = ("-", -signed) if signed < 0 else ("+", signed)
            parts.append((sign, name if size == 1 else f"{integer(size, 'i64')} * {name}"))
        value = (linear.const + offset) & ((1 << 64) - 1)
        signed = value - (1 << 64) if value >> 63 else value
        if signed or not parts:
            parts.append(("-" if signed < 0 else "+", integer(abs(signed), "i64")))
        parts.sort(key=lambda part: part[0])  # "+" sorts before "-"
        head = parts[0][1] if parts[0][0] == "+" else f"-{parts[0][1]}"
        return head + "".join(f" {sign} {text}" for sign, text in parts[1:])

    def pointer_text(self, linear: Linear) -> str:
        """An address as pointer plus offset, so that the compiler knows which term is the base."""
        for atom, coef in linear.terms:
            if coef == 1 and isinstance(atom, Val) and atom.number not in self.scope.counters:
                rest = Linear(linear.const, tuple(t for t in linear.terms if t[0] != atom))
                pointer = self.base(atom)
                if len(rest.terms) == 1 and (element := self.elements.get((pointer, self.linear(Linear(0, rest.terms))))):
                    pointer, rest = element, Linear(linear.const, ())
                offset = self.linear(rest)
                return pointer if offset == "0" else f"{pointer} {offset if offset[0] == '-' else '+ ' + offset}"
        return self.linear(linear)

    def base(self, value: Val) -> str:
        """Returns what an address starts from. Live-ins come as pointer parameters: a pointer made from a number tells the
        compiler that it may compute one address from another, and it then walks arrays in another way than the original
        does."""
        if value.number not in self.scope.live_ins:
            return f"(uint8_t *){self.text(value)}"
        if value.number not in self.bases:
            self.bases[value.number] = self.given.new(f"base_{self.text(value)}")
        return self.bases[value.number]

    def declare_code(self, value: Val) -> str:
        """Left side of a code's definition."""
        name = self.code_name(value)
        return name if value.number in self.scope.hoisted else f"const int64_t {name}"

    def declare(self, value: Val) -> str:
        """Left side of a definition."""
        name = self.called(value)
        return name if value.number in self.scope.hoisted else f"const {CTYPE[value.ty]} {name}"
