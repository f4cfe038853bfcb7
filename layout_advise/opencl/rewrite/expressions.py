"""The edits of kernel source for a layout of buffers: the rewriting of ``apply``, for pointers of one address space.

A pointer to an element in a buffer of the host becomes the buffers and a number; copies in private or local memory, and
pointers to these, stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.apply.rewrite.expressions import SplitExpressions
from layout_advise.apply.rewrite.fields import RecordField
from layout_advise.apply.rewrite.program import SourceProgram, arguments, peeled
from layout_advise.apply.rewrite.syntax import CType, Edit, Syntax
from layout_advise.apply.rewrite.target import Target
from layout_advise.opencl.source.kernels import Kernel, space_of

ONE_ELEMENT = ("atomic_", "atom_")
"""How functions are called that take an address and touch that one value."""
LOG_PARAMETERS = "__global uint *layout_advise_log, uint layout_advise_room, uint layout_advise_every"
LOG_START = (
    "const ulong layout_advise_item = get_global_id(0) - get_global_offset(0) + get_global_size(0) * (get_global_id(1)"
    " - get_global_offset(1) + get_global_size(1) * (get_global_id(2) - get_global_offset(2)));"
    " __global uint *layout_advise_own = layout_advise_item % layout_advise_every ? 0"
    " : layout_advise_log + layout_advise_item / layout_advise_every * layout_advise_room;"
)
"""One work item of so many has a part of the log: how much room there is, how many accesses there were, the first of
them."""
STATEMENTS = ("COMPOUND_STMT", "IF_STMT", "FOR_STMT", "WHILE_STMT", "DO_STMT")
"""Below these the value of an assignment is not used."""
OUT_PARAMETERS = ("fract", "frexp", "modf", "remquo", "sincos", "lgamma_r")


@dataclass(frozen=True, slots=True)
class BufferTarget(Target):
    """The record, where pointers to it are in ``space``."""

    space: str = "global"

    @property
    def reorders(self) -> bool:
        """False: private copies keep the declaration as it is."""
        return False

    def is_pointer(self, shape: CType | None) -> bool:
        """True for a pointer to the record in a buffer of the host."""
        if shape is None or shape.form != "pointer" or shape.of is None:
            return False
        return self.is_value(shape.of) and space_of(shape.of) == self.space

    def is_array(self, shape: CType | None) -> bool:
        """False: arrays of the record are private, local, or the program's own constants, and stay."""
        return False


class KernelExpressions(SplitExpressions):
    """Edits for one record; a kernel gets ``buffers`` parameters in the place of one. Where accesses are ``noted``, it gets
    a log, and how many entries of it belong to one work item."""

    def __init__(
        self, program: SourceProgram, target: BufferTarget, kernels: tuple[Kernel, ...], buffers: int, noted: bool
    ) -> None:
        super().__init__(program, target)
        self.buffers, self.noted = buffers, noted
        self.kernels = {kernel.node.declares for kernel in kernels}
        self.space = f"__{target.space}"

    def element(self, node: Syntax) -> tuple[str, str] | None:
        """The pointer and the index of an element in a buffer; None for anything else."""
        inner = peeled(node)
        if inner.kind == "ARRAY_SUBSCRIPT_EXPR" and not any(self.target.is_pointer(c.shape) for c in inner.children):
            return None
        if inner.kind == "UNARY_OPERATOR" and not self.target.is_pointer(inner.children[0].shape):
            return None
        return super().element(node)

    def place(self, field: RecordField, element: tuple[str, str]) -> str:
        """The address of a member; its function has a name that no other one can have, whatever the member is called."""
        return f"{self.target.prefix}_of_{field.name}({element[0]}, {element[1]})"

    def there(self, node: Syntax) -> str:
        """OpenCL C that asks whether a pointer to elements is there."""
        return f"({self.render(node)}.base != NULL)"

    def _binary_operator(self, node: Syntax) -> list[Edit] | None:
        """A variable that is stored goes by its address: given by value, calling conventions take records apart, which slows
        the loops that made its members (decision 79)."""
        left, right = node.children
        variable = peeled(right)
        holder = self.program.parents.get(node)
        alone = holder is not None and holder.kind in STATEMENTS
        own = variable.kind == "DECL_REF_EXPR" and self.target.is_value(variable.shape)
        if node.operator == "=" and alone and own and space_of(variable.shape) in ("generic", "private"):
            found = self.element(left)
            if found is not None:
                return self.whole(node, f"{self.helper('put')}({found[0]}, {found[1]}, &{variable.name})")
        return super()._binary_operator(node)

    def _address(self, node: Syntax, of: Syntax) -> list[Edit] | None:
        if self.target.is_value(of.shape) and not self.target.is_pointer(node.shape):
            return None
        member = self._member(of)
        if member is not None and self._is_for_one(node):
            return self.whole(node, self.place(*member))
        return super()._address(node, of)

    def _is_for_one(self, node: Syntax) -> bool:
        """True if an address is given to a function of the language that touches nothing beside it."""
        call = self.program.parent(node, "PAREN_EXPR", "UNEXPOSED_EXPR", "CSTYLE_CAST_EXPR")
        if call is None or call.kind != "CALL_EXPR" or not call.foreign:
            return False
        return call.name.startswith(ONE_ELEMENT) or call.name in OUT_PARAMETERS

    def _type_ref(self, node: Syntax) -> list[Edit] | None:
        holder = self.program.parents.get(node)
        if holder is None or not self._leads_there(holder.shape):
            return []
        return super()._type_ref(node)

    def _leads_there(self, shape: CType | None) -> bool:
        """True for the declaration of a pointer to an element, and of a function that returns one."""
        if shape is not None and shape.form == "function":
            return self.target.is_pointer(shape.of)
        return self.target.is_pointer(shape)

    def _function_decl(self, node: Syntax) -> list[Edit] | None:
        mine = [child for child in node.children if child.kind == "PARM_DECL" and self.target.is_pointer(child.shape)]
        if node.declares not in self.kernels or not mine:
            return None
        edits: list[Edit] = []
        starts: list[str] = [f" {LOG_START}"] if self.noted else []
        for child in node.children:
            if child in mine:
                text, start = self._as_buffers(child, last=child is mine[-1])
                edits += self.whole(child, text)
                starts.append(start)
            elif child.kind == "COMPOUND_STMT":
                edits += [Edit(child.start + 1, child.start + 1, "".join(starts)), *self.edits(child)]
            else:
                edits += self.edits(child)
        return edits

    def _as_buffers(self, parameter: Syntax, last: bool) -> tuple[str, str]:
        """The parameters in the place of one, and the statement that makes a pointer to an element of them."""
        names = [f"{parameter.name}_{number}" for number in range(self.buffers)]
        tight = "restrict " if "restrict" in parameter.shape.text else ""
        given = [f"{self.space} uchar *{tight}{name}" for name in names]
        if self.noted and last:
            given.append(LOG_PARAMETERS)
        filled = ", ".join([*names, *(["layout_advise_own"] if self.noted else []), "0"])
        return ", ".join(given), f" {self.target.ref} {parameter.name} = {{{filled}}};"


def atomic_members(program: SourceProgram, target: BufferTarget) -> frozenset[str]:
    """Members whose address an atomic function is given."""
    found = set()
    for top in (top for unit in program.units for top in unit.declarations):
        for node in top.walk():
            if node.kind == "CALL_EXPR" and node.foreign and node.name.startswith(ONE_ELEMENT):
                named = (inner for argument in arguments(node) for inner in argument.walk())
                found |= {n.name for n in named if n.kind == "MEMBER_REF_EXPR" and target.of(n.refers) is not None}
    return frozenset(found)
