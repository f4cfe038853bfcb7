"""Whether the address of a member stays a way to that member alone: then it may lie anywhere."""

from __future__ import annotations

from layout_advise.apply.rewrite.program import SourceProgram, arguments, peeled, uncast
from layout_advise.apply.rewrite.syntax import Syntax

SCANNING = {"scanf", "sscanf", "fscanf", "frexp", "modf", "strtol", "strtod", "strtoul", "sincos"}
SIZED = {
    "memcpy": 2,
    "memmove": 2,
    "memset": 2,
    "memcmp": 2,
    "strncpy": 2,
    "snprintf": 1,
    "strncmp": 2,
    "strncat": 2,
    "fgets": 1,
}
TEXT = {"strcpy", "strcmp", "strlen", "strcat", "printf", "fprintf", "sprintf", "puts", "fputs", "atoi", "atof", "strchr",
        "strcasecmp", "strtol", "strtod", "scanf", "sscanf", "fscanf", "perror"}  # fmt: skip
AROUND = ("PAREN_EXPR", "UNEXPOSED_EXPR")


class MemberAddresses:
    """Follows addresses of members through variables, arguments and results of the program's functions."""

    def __init__(self, program: SourceProgram) -> None:
        self.program = program
        self.assumed: set[str] = set()

    def stays(self, node: Syntax) -> bool:
        """True if the address that ``node`` computes only serves to reach what it points to."""
        up = self.program.parents.get(node)
        if up is None:
            return False
        if up.kind in AROUND:
            return self.stays(up)
        if up.kind in ("UNARY_OPERATOR", "MEMBER_REF_EXPR"):
            return up.kind == "MEMBER_REF_EXPR" or up.operator in ("*", "!")
        if up.kind == "CONDITIONAL_OPERATOR":
            return node is up.children[0] or self.stays(up)
        if up.kind == "ARRAY_SUBSCRIPT_EXPR":
            return self.program.text(up.children[-1]) == "0"
        if up.kind == "BINARY_OPERATOR":
            return up.operator in ("==", "!=", "&&", "||") or (up.operator == "=" and self._assigned(up, node))
        if up.kind == "VAR_DECL":
            return self._variable(up.declares)
        if up.kind == "INIT_LIST_EXPR":
            above = self.program.parent(up, "INIT_LIST_EXPR", "UNEXPOSED_EXPR")
            return above is not None and above.kind == "VAR_DECL" and self._table(above.declares)
        if up.kind == "CALL_EXPR":
            return self._argument(up, node)
        return up.kind == "RETURN_STMT" and self._returned(up)

    def _assigned(self, assignment: Syntax, node: Syntax) -> bool:
        to = peeled(assignment.children[0])
        return node is not assignment.children[0] and to.kind == "DECL_REF_EXPR" and self._variable(to.refers)

    def _variable(self, usr: str) -> bool:
        if usr in self.assumed:
            return True
        self.assumed.add(usr)
        uses = self.program.uses[usr]
        return all(self._is_assigned(use) or self.stays(use) for use in uses)

    def _is_assigned(self, use: Syntax) -> bool:
        up = self.program.parents.get(use)
        return up is not None and up.kind == "BINARY_OPERATOR" and up.operator == "=" and up.children[0] is use

    def _table(self, usr: str) -> bool:
        """A local array of addresses, of which elements are taken."""
        for use in self.program.uses[usr]:
            up = self.program.parent(use, *AROUND)
            if up is None or up.kind != "ARRAY_SUBSCRIPT_EXPR" or not self.stays(up):
                return False
        return True

    def _argument(self, call: Syntax, node: Syntax) -> bool:
        given = [k for k, argument in enumerate(arguments(call)) if argument is node]
        if not given:
            return False
        if call.foreign:
            return call.name in SCANNING or (call.name in SIZED and self.fits(call, node))
        parameters = self.program.parameters(call.refers)
        return parameters is not None and given[0] < len(parameters) and self._variable(parameters[given[0]].declares)

    def fits(self, call: Syntax, node: Syntax) -> bool:
        """True if a library function that is told a size stays within the member that ``node`` leads to."""
        place = SIZED.get(call.name)
        given = arguments(call)
        if place is None or place >= len(given):
            return call.name in TEXT
        member = uncast(node)
        member = uncast(member.children[0]) if member.kind == "UNARY_OPERATOR" and member.operator == "&" else member
        size = uncast(given[place])
        text = self.program.text(size)
        if text.isdigit():
            return int(text) <= member.shape.size
        if size.kind == "CXX_UNARY_EXPR" and text.startswith("sizeof") and size.children:
            return 0 < size.children[-1].shape.size <= member.shape.size
        return False

    def _returned(self, statement: Syntax) -> bool:
        up = self.program.parents.get(statement)
        while up is not None and up.kind != "FUNCTION_DECL":
            up = self.program.parents.get(up)
        if up is None or up.declares in self.assumed:
            return up is not None
        self.assumed.add(up.declares)
        calls = [use for use in self.program.uses[up.declares] if use.kind == "CALL_EXPR"]
        named = [use for use in self.program.uses[up.declares] if use.kind == "DECL_REF_EXPR"]
        return len(calls) == len(named) and all(self.stays(call) for call in calls)
