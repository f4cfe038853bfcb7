"""The accesses that one work item makes to memory, in their order, as a loop nest: what memory distances are taken of.

Functions are gone into where they are called. Of branches all are taken, one behind the other, as the paper's equations
have it for values that nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from layout_advise.apply.rewrite.program import arguments, peeled, uncast
from layout_advise.apply.rewrite.syntax import Syntax
from layout_advise.layoutalgebra.fieldgraph.memory_distance import AccessKind, FieldAccess, Repeat, Step
from layout_advise.opencl.graph.bounds import LoopBounds
from layout_advise.opencl.graph.elements import element_of, spelled
from layout_advise.opencl.graph.places import MemoryPlaces, Place
from layout_advise.opencl.source.kernels import Kernel, KernelProgram

LOOPS = ("FOR_STMT", "WHILE_STMT", "DO_STMT")


def kernel_steps(program: KernelProgram, kernel: Kernel, known: Mapping[str, int] | None = None) -> tuple[Step, ...]:
    """The accesses of one work item of the kernel in global and constant memory; fields are named ``record.member``."""
    return tuple(_Flow(program, known).function(kernel.node, ()))


class _Flow:
    """Goes through statements in their order."""

    def __init__(self, program: KernelProgram, known: Mapping[str, int] | None) -> None:
        self.program = program.program
        self.places = MemoryPlaces(program)
        self.bounds = LoopBounds(self.program, known)
        self.within: list[str] = []
        self.given: dict[str, str] = {}
        """What parameters of functions that are being gone through were given, as text."""

    def function(self, node: Syntax, given: Sequence[Syntax]) -> list[Step]:
        """The body of a function that is called with ``given``."""
        if node.declares in self.within:  # OpenCL C has no recursion; a source that has it is not followed
            return []
        parameters = [child for child in node.children if child.kind == "PARM_DECL"]
        values = {p.declares: self.bounds.value(a) for p, a in zip(parameters, given, strict=False)}
        before, outside = dict(self.bounds.bound), self.given
        spelt = [spelled(argument, self.program, outside) for argument in given]
        self.given = {**outside, **{p.declares: text for p, text in zip(parameters, spelt, strict=False)}}
        self.bounds.bound.update({name: value for name, value in values.items() if value is not None})
        self.within.append(node.declares)
        steps = self.all(child for child in node.children if child.kind == "COMPOUND_STMT")
        self.within.pop()
        self.bounds.bound, self.given = before, outside
        return steps

    def all(self, nodes: Iterable[Syntax]) -> list[Step]:
        """The steps of nodes one after the other."""
        return [step for node in nodes for step in self.steps(node)]

    def steps(self, node: Syntax) -> list[Step]:
        """The steps of a statement or an expression that is evaluated."""
        if node.kind in LOOPS:
            return self._loop(node)
        if node.kind == "BINARY_OPERATOR" and node.operator == "=":
            return self._assigned(node)
        if node.kind == "COMPOUND_ASSIGNMENT_OPERATOR":
            left, right = node.children
            place = self.places.of(left)
            if place is None:
                return [*self.steps(right), *self.steps(left)]
            return [*self.steps(right), *self._way(left), *self._accesses(left, place, "changed")]
        if node.kind == "UNARY_OPERATOR":
            return self._unary(node)
        if node.kind == "CALL_EXPR":
            return self._call(node)
        if node.kind == "VAR_DECL":
            return self._declared(node)
        if node.kind in ("CXX_UNARY_EXPR", "TYPE_REF"):
            return []
        place = self.places.of(node)
        if place is not None:
            return [*self._way(node), *self._accesses(node, place)]
        return self.all(node.children)

    def _loop(self, node: Syntax) -> list[Step]:
        head = node.children[:1] if node.kind == "FOR_STMT" and peeled(node.children[0]).operator == "=" else ()
        head = node.children[:1] if node.kind == "FOR_STMT" and node.children[0].kind == "DECL_STMT" else head
        turn = node.children[len(head) :]
        if node.kind == "FOR_STMT" and len(turn) > 2:  # the step comes behind the body
            turn = (turn[0], turn[-1], *turn[1:-1])
        body = self.all(turn)
        if not body:
            return self.all(head)
        return [*self.all(head), Repeat(self.bounds.trips(node), tuple(body))]

    def _assigned(self, node: Syntax) -> list[Step]:
        left, right = node.children
        whole = self.places.of(peeled(right))
        place = self.places.of(left)
        if whole is not None and whole.member is None and whole.record is not None:
            target = peeled(left)
            names = self.places.used_of_variable(target.refers) if target.kind == "DECL_REF_EXPR" else None
            loaded = [*self._way(peeled(right)), *self._members(right, whole, names)]
        else:
            loaded = self.steps(right)
        if place is None:
            return [*loaded, *self._way(peeled(left))]
        return [*loaded, *self._way(peeled(left)), *self._accesses(left, place, "written")]

    def _declared(self, node: Syntax) -> list[Step]:
        initial = node.children[-1] if node.children and node.children[-1].kind not in ("TYPE_REF", "PARM_DECL") else None
        if initial is None:
            return []
        whole = self.places.of(peeled(initial))
        if whole is not None and whole.member is None and whole.record is not None:
            return [*self._way(peeled(initial)), *self._members(initial, whole, self.places.used_of_variable(node.declares))]
        return self.steps(initial)

    def _unary(self, node: Syntax) -> list[Step]:
        child = node.children[0]
        if node.operator == "&":
            return self._way(peeled(child))
        if node.operator.removeprefix("post") in ("++", "--"):
            changed = self.places.of(child)
            return self.steps(child) if changed is None else [*self._way(child), *self._accesses(child, changed, "changed")]
        place = self.places.of(node)
        if place is not None:
            return [*self._way(node), *self._accesses(node, place)]
        return self.steps(child)

    def _call(self, node: Syntax) -> list[Step]:
        found: list[Step] = []
        callee = self.program.functions.get(node.refers)
        parameters = self.program.parameters(node.refers) or ()
        for number, argument in enumerate(arguments(node)):
            inner = peeled(argument)
            whole = self.places.of(inner)
            if whole is not None and whole.member is None and whole.record is not None and number < len(parameters):
                names = self.places.used_of_variable(parameters[number].declares)
                found += [*self._way(inner), *self._members(inner, whole, names)]
                continue
            found += self.steps(argument)
            bare = uncast(argument)
            if callee is None and bare.kind == "UNARY_OPERATOR" and bare.operator == "&":
                found += self._touched(bare.children[0])  # an atomic, or a load of a vector
        return found if callee is None else [*found, *self.function(callee, arguments(node))]

    def _touched(self, node: Syntax) -> list[Step]:
        place = self.places.of(peeled(node))
        return [] if place is None else self._accesses(node, place, "changed")

    def _accesses(self, node: Syntax, place: Place, kind: AccessKind = "read") -> list[Step]:
        if place.record is None:
            return [FieldAccess(None, place.bytes, kind)]
        if place.member is None:
            return self._members(node, place, None, kind)
        element = element_of(node, self.program, self.given)
        return [FieldAccess(f"{place.record.name}.{place.member}", place.bytes, kind, element)]

    def _members(self, node: Syntax, place: Place, names: frozenset[str] | None, kind: AccessKind = "read") -> list[Step]:
        """The members of a record that is loaded whole: those that are used."""
        assert place.record is not None
        members = [m for m in place.record.members if names is None or m.name in names]
        element = element_of(node, self.program, self.given)
        return [FieldAccess(f"{place.record.name}.{m.name}", m.bytes, kind, element) for m in members]

    def _way(self, node: Syntax) -> list[Step]:
        """The accesses on the way to a place: those of its indices, and of pointers that lie in memory."""
        found: list[Step] = []
        for child in node.children:
            inner = peeled(child)
            if (self.places.of(inner) is not None and inner.shape.form in ("record", "array")) or (
                self.places.of(inner) is not None and node.kind in ("UNEXPOSED_EXPR", "PAREN_EXPR")
            ):
                found += self._way(inner)
            else:
                found += self.steps(child)
        return found
