"""The array with a name, and the parameters of functions that it is handed on in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from layout_advise.apply.rewrite.arrays.uses import ArrayUse, extents_of, is_size_of, use_of
from layout_advise.apply.rewrite.program import Refusal, SourceProgram, arguments, peeled
from layout_advise.apply.rewrite.syntax import Syntax
from layout_advise.errors import SourceError

COPIES = {"memcpy", "memmove"}
HINT = "choose another layout with --candidate"


def array_called(program: SourceProgram, name: str, lengths: tuple[int, ...]) -> Syntax:
    """The one array with that name (``table``, ``grid::table``; of a member ``g->table``, ``all.g.table``) and as many
    dimensions as it has ``lengths``, each at least so long. Raises SourceError where there is none, or several."""
    *_, own = re.split(r"::|->|\.", name)
    among = program.fields if re.search(r"->|\.", name) else program.declared
    declared = [
        node for nodes in among.values() for node in nodes if node.kind in ("VAR_DECL", "FIELD_DECL") and node.name == own
    ]
    found = {node.declares: node for node in declared if _has(extents_of(node.shape), lengths)}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise SourceError(f"cannot rewrite {name}", f"{len(found)} arrays have that name", HINT)
    dims = "".join(f"[{length}]" for length in lengths)
    why = f"no declaration says {own}{dims}: memory that is allocated, or indexed by computed numbers, cannot be written yet"
    raise SourceError(f"cannot rewrite {name}", why, HINT)


def _has(extents: tuple[int, ...], lengths: tuple[int, ...]) -> bool:
    return len(extents) == len(lengths) and all(own >= used for own, used in zip(extents, lengths, strict=True))


@dataclass(slots=True)
class Carriers:
    """The arrays ``usrs`` whose dimensions are to change, with the parameters that they are handed on in: of each function
    the positions in ``parameters``. ``uses`` are all their mentions."""

    program: SourceProgram
    usrs: set[str]
    rank: int
    parameters: dict[str, set[int]] = field(default_factory=dict)
    uses: list[ArrayUse] = field(default_factory=list)
    refusals: set[Refusal] = field(default_factory=set)

    def follow(self) -> None:
        """Goes from mention to mention until no further parameter is found, then checks all of them."""
        left = list(self.usrs)
        while left:
            usr = left.pop()
            for node in (*self.program.uses[usr], *self.program.members[usr]):
                use = use_of(self.program, node, self.rank)
                self.uses.append(use)
                if use.why:
                    self._refuse(node, use.why)
                elif use.call is not None and not use.call.foreign:
                    left += self._handed_on(use.call, use.position)
        for use in self.uses:
            if use.call is not None and use.call.foreign and not self._takes_whole(use.call):
                self._refuse(use.node, f"{use.call.name} is given {use.node.name}")
        for function, positions in self.parameters.items():
            self._check_calls(function, positions)

    def _handed_on(self, call: Syntax, position: int) -> list[str]:
        """The parameter that an argument arrives in, if it is a new one."""
        function = self.program.functions.get(call.refers)
        taken = parameters(function) if function is not None else ()
        if function is None or position >= len(taken):
            self._refuse(call, f"{call.name or 'a function'} is given the array, and no source defines it")
            return []
        one = taken[position]
        self.parameters.setdefault(call.refers, set()).add(position)
        if one.declares in self.usrs:
            return []
        inner = one.shape.of if one.shape.form in ("pointer", "array") else None
        if inner is None or len(extents_of(inner)) != self.rank - 1:
            self._refuse(call, f"{call.name} takes the array as {one.shape.text}")
            return []
        self.usrs.add(one.declares)
        return [one.declares]

    def _takes_whole(self, call: Syntax) -> bool:
        """True for a call of the library to which the order of an array's elements is all one."""
        usrs, given = frozenset(self.usrs), arguments(call)
        if call.name not in {"memset", *COPIES} or len(given) != 3 or not is_size_of(self.program, given[2], usrs):
            return False
        ends = given[:2] if call.name in COPIES else given[:1]
        return all(self._is_carrier(end) for end in ends)

    def _is_carrier(self, node: Syntax) -> bool:
        node = peeled(node)
        return node.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR") and node.refers in self.usrs

    def _check_calls(self, function: str, positions: set[int]) -> None:
        """A function that takes such an array must be called by name, and be given no other one."""
        for use in self.program.uses[function]:
            if use.kind == "CALL_EXPR":
                given = arguments(use)
                if not all(k < len(given) and self._is_carrier(given[k]) for k in positions):
                    self._refuse(use, f"{use.name} is given another array as well")
            else:
                up = self.program.parent(use, "PAREN_EXPR", "UNEXPOSED_EXPR")
                if up is None or up.kind != "CALL_EXPR" or up.refers != function:
                    self._refuse(use, f"{use.name} may be called through a pointer")

    def _refuse(self, node: Syntax, why: str) -> None:
        self.refusals.add(Refusal(node.file, node.line, why, node.start if node.in_macro else -1))


def parameters(function: Syntax) -> tuple[Syntax, ...]:
    """The declarations of a function's parameters."""
    return tuple(child for child in function.children if child.kind == "PARM_DECL")
