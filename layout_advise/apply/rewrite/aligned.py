"""Padded elements: the record is aligned to its new size, or to a line, and all memory that it lies in with it.

An alignment of the declaration is enough for variables, ``new`` and containers of C++17; what ``malloc`` and its like give
is aligned to 16 bytes only, and compilers may use instructions that fault on that.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from layout_advise.apply.rewrite.helpers.places import function
from layout_advise.apply.rewrite.program import Refusal, SourceProgram, arguments, uncast
from layout_advise.apply.rewrite.syntax import CType, Edit, Syntax
from layout_advise.apply.rewrite.target import Target

GIVEN = 16
"""Bytes to which ``malloc`` aligns, and ``new`` before C++17."""
ALIGNED = {"aligned_alloc": 0, "memalign": 0}
"""Which argument of these is the alignment."""
PAGES = {"mmap", "valloc"}
CASTS = ("UNEXPOSED_EXPR", "CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_REINTERPRET_CAST_EXPR")
BYTES = {"memset", "memcpy", "memmove", "qsort", "bsearch"}
"""Functions that are told how many bytes elements have."""


def declared(program: SourceProgram, target: Target, record: Syntax) -> Edit | Refusal:
    """The alignment in the record's declaration, or why it cannot be put there."""
    word = program.text(record).split(maxsplit=1)[0]
    if record.in_macro or word not in ("struct", "class"):
        return Refusal(record.file, record.line, "its declaration is not of a known form", record.start)
    at, to = record.start + len(word), target.aligned
    return Edit(at, at, f" alignas({to})" if program.in_cxx else f" __attribute__((aligned({to})))")


@dataclass(slots=True)
class AlignedMemory:
    """Goes over the program's nodes; ``edits`` puts allocations of the record, and of records that hold it, on aligned
    memory. ``used`` are the helpers that this takes."""

    program: SourceProgram
    target: Target
    refusals: set[Refusal] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    holders: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.holders = _holders(self.program, self.target)

    def edits(self, node: Syntax) -> Iterator[Edit]:
        """The edits that one node asks for, or none."""
        if node.kind in CASTS and node.children and self._leads(node.shape):
            from_ = uncast(node.children[-1])
            if from_.shape.form == "pointer" and from_.shape.of is not None and from_.shape.of.form == "void":
                yield from self._from_bytes(node, from_)
        elif node.kind == "CALL_EXPR" and node.foreign and node.name in BYTES:
            if any(self._leads(uncast(given).shape) for given in arguments(node)) and not self._knows_size(node):
                self._refuse(node, f"{node.name} is not told the size of {self.target.spelling}")
        elif self.target.aligned > GIVEN and (why := self._obstacle(node)):
            self._refuse(node, why)

    def _obstacle(self, node: Syntax) -> str:
        """Memory of the program's own for what C++ makes."""
        if node.kind == "CXX_METHOD" and node.name.startswith("operator new"):
            of = self.program.parents.get(node)
            own = of is not None and of.declares in (self.target.usr, *self.holders)
            return "an operator new of the program's own gives memory that is not aligned" if own else ""
        if node.kind == "CXX_NEW_EXPR" and self._leads(node.shape):
            given = self.program.text(node).removeprefix("::").removeprefix("new").lstrip()
            return "new is given a place, which may not be aligned" if given.startswith("(") else ""
        return ""

    def _from_bytes(self, node: Syntax, from_: Syntax) -> Iterator[Edit]:
        """Elements from a ``void *``: of an allocation, or of what the program was handed back (``qsort``'s functions)."""
        if from_.kind == "CALL_EXPR":
            yield from self._allocation(node, from_)
        elif self.target.aligned > GIVEN and not (from_.kind == "DECL_REF_EXPR" and self._is_handed_back(from_)):
            self._refuse(node, f"{self.program.text(from_) or 'memory'} may be memory that is not aligned")

    def _allocation(self, node: Syntax, call: Syntax) -> Iterator[Edit]:
        name, given, prefix = call.name, arguments(call), self.target.prefix
        if call.in_macro:
            self.refusals.add(Refusal(node.file, node.line, f"a macro calls {name}", call.start))
        elif not self._knows_size(call):
            self._refuse(node, f"{name} is not told the size of {self.target.spelling}")
        elif self.target.aligned <= GIVEN:
            return
        elif not call.foreign:
            self._refuse(node, f"{name} gives memory that is not aligned")
        elif name in ("malloc", "calloc", "realloc"):
            callee = call.children[0]
            if name == "malloc":
                yield Edit(callee.start, given[0].start, f"aligned_alloc({self.target.aligned}, ")
            else:
                helper = {"calloc": "zeroed", "realloc": "regrown"}[name]
                self.used.add(helper)
                yield Edit(callee.start, callee.end, f"{prefix}_{helper}")
        elif name in ALIGNED and len(given) > ALIGNED[name]:
            text = self.program.text(given[ALIGNED[name]])
            if not text.isdigit() or int(text) % self.target.aligned:
                yield Edit(given[0].start, given[0].end, str(self.target.aligned))
        elif name not in PAGES and name != "bsearch":
            self._refuse(node, f"{name} gives memory that is not aligned")

    def _is_handed_back(self, use: Syntax) -> bool:
        """True for a parameter of a function that the program only hands to others: they call it with elements."""
        up = self.program.parents.get(use)
        while up is not None and up.kind not in ("FUNCTION_DECL", "CXX_METHOD"):
            up = self.program.parents.get(up)
        own = up is not None and any(child.declares == use.refers and child.kind == "PARM_DECL" for child in up.children)
        return own and up is not None and all(one.kind != "CALL_EXPR" for one in self.program.uses[up.declares])

    def _knows_size(self, call: Syntax) -> bool:
        """True if ``sizeof`` the record, or one that holds it, is among what a call is given."""
        return any(
            part.kind == "CXX_UNARY_EXPR"
            and bool(part.children)
            and self.program.text(part).startswith("sizeof")
            and self._holds(part.children[-1].shape)
            for argument in arguments(call)
            for part in argument.walk()
        )

    def _leads(self, shape: CType) -> bool:
        """True for pointers to elements, or to what holds them, and arrays of them."""
        return shape.form in ("pointer", "array") and self._holds(shape.of)

    def _holds(self, shape: CType | None) -> bool:
        while shape is not None and shape.form == "array":
            shape = shape.of
        return shape is not None and shape.form == "record" and (shape.record in self.holders or self.target.is_value(shape))

    def _refuse(self, node: Syntax, why: str) -> None:
        self.refusals.add(Refusal(node.file, node.line, why))


def _holders(program: SourceProgram, target: Target) -> frozenset[str]:
    """The records that have the target's as a member, or in one, or derive from it."""
    inside: dict[str, set[str]] = {}
    for usr, nodes in program.declared.items():
        for node in nodes:
            if node.kind in ("STRUCT_DECL", "CLASS_DECL", "UNION_DECL") and node.defines:
                inside[usr] = {base.declares for base in node.bases}
                for child in node.children:
                    shape: CType | None = child.shape if child.kind == "FIELD_DECL" else None
                    while shape is not None and shape.form == "array":
                        shape = shape.of
                    inside[usr] |= {shape.record} if shape is not None and shape.form == "record" else set()
    found = {target.usr}
    while more := {usr for usr, records in inside.items() if usr not in found and records & found}:
        found |= more
    return frozenset(found - {target.usr})


def given_memory(prefix: str, to: int, used: Set[str]) -> str:
    """The functions that give memory aligned to so many bytes, of those that are used, as ``malloc``, ``calloc`` and
    ``realloc`` do; their names begin with ``prefix``."""
    parts = []
    if "begun" in used:
        parts.append(
            function(
                "void *",
                f"{prefix}_begun(size_t bytes)",
                f"return bytes <= SIZE_MAX - {to} ? aligned_alloc({to}, (bytes + {to - 1}) / {to} * {to}) : NULL;",
            )
        )
    if "zeroed" in used:
        parts.append(
            function(
                "void *",
                f"{prefix}_zeroed(size_t count, size_t size)",
                f"const size_t most = size != 0 ? (SIZE_MAX - {to}) / size : count;",
                f"void *const p = count <= most ? aligned_alloc({to}, (count * size + {to - 1}) / {to} * {to}) : NULL;",
                "return p != NULL ? memset(p, 0, count * size) : NULL;",
            )
        )
    if "regrown" in used:
        parts.append(
            function(
                "void *",
                f"{prefix}_regrown(void *old, size_t bytes)",
                f"void *const p = aligned_alloc({to}, (bytes + {to - 1}) / {to} * {to});",
                "const size_t had = malloc_usable_size(old);",
                "if (p == NULL)",
                "    return NULL;",
                "if (old != NULL)",
                "    memcpy(p, old, had < bytes ? had : bytes);",
                "free(old);",
                "return p;",
            )
        )
    return "\n" + "\n".join(parts) if parts else ""
