"""Annotated loops as OpenMP target regions (``soa_conversion_offload_compute``): the arrays of the views are mapped, the
loop's iterations run side by side on the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from layout_advise.apply.rewrite.program import SourceProgram
from layout_advise.apply.rewrite.syntax import Edit, Syntax
from layout_advise.views.accesses import ConvertedMembers
from layout_advise.views.annotations import LOOPS, LoopView, is_element_of, refused
from layout_advise.views.calls import Walker
from layout_advise.views.names import space_of, variable_of

LEAVES = {"RETURN_STMT", "GOTO_STMT", "INDIRECT_GOTO_STMT", "CXX_THROW_EXPR"}


def check_offload(program: SourceProgram, walker: Walker, view: LoopView, found: Sequence[LoopView]) -> None:
    """Refuses a loop that a device cannot compute: one that is left early, that changes what is outside of it, or that uses
    more of it than numbers."""
    loop, body = view.loop, view.loop.children[-1]
    line = program.texts[loop.file].rfind("\n", 0, view.start)
    above = program.texts[loop.file][:line].rsplit("\n", 1)[-1].lstrip()
    if above.startswith("#pragma"):
        raise refused(loop, f"it is to be offloaded and has a pragma: {above}")
    for node in body.walk():
        leaves = node.kind in LEAVES or (node.kind == "BREAK_STMT" and _leaves(program, node, loop))
        if leaves and not _in_lambda(program, node, loop):
            raise refused(node, "the loop is left early, which a device cannot do")
    for other in (one for one in found if within(loop, one.region)):
        if other.number in walker.walked.compared:
            raise refused(
                loop, f"elements of {other.container} are compared by their addresses, which a device does not have"
            )
    containers = {(held.start, held.end) for one in found for held in _held(program, one)}
    inner = {one.declares for one in _carried_out(walker, body) if one.kind in ("VAR_DECL", "PARM_DECL")}
    inner |= {one.variable.declares for one in found if one.variable is not None}
    for node in _carried_out(walker, body):
        if node.kind == "MEMBER_REF_EXPR" and node.shape.form == "pointer":
            raise refused(node, f"{node.name} leads to memory that a device does not have")
        if node.kind != "DECL_REF_EXPR" or not program.text(node).endswith(node.name):  # or a variable of the compiler's own
            continue
        outer = node.refers not in inner and not node.foreign
        if outer and "(" not in node.shape.text and (node.start, node.end) not in containers:
            _check_outer(program, node, within(node, loop))


def _held(program: SourceProgram, view: LoopView) -> Iterator[Syntax]:
    """The places of a view's container, at which the new source has the view."""
    if view.variable is not None:
        yield from view.loop.children[1].walk()
    else:
        for node in view.region.walk():
            if is_element_of(program, node, view.container):
                yield from node.children[0].walk()


def _check_outer(program: SourceProgram, node: Syntax, in_loop: bool) -> None:
    """Refuses a variable of outside that is no number, or that changes."""
    if node.shape.form != "other":
        raise refused(node, f"{node.name} is of outside the loop and no number; a device does not have it")
    if not in_loop and "const" not in node.shape.text.split():
        raise refused(node, f"{node.name} is of outside the function; a device does not have it")
    if _changes(program, node):
        raise refused(node, f"{node.name} changes in the loop, and each iteration on a device has its own; use a member")


def _changes(program: SourceProgram, node: Syntax) -> bool:
    up = program.parents.get(node)
    while up is not None and up.kind == "PAREN_EXPR":
        node, up = up, program.parents.get(up)
    if up is None or up.kind == "UNEXPOSED_EXPR":  # its value is read
        return False
    if up.kind in ("COMPOUND_ASSIGNMENT_OPERATOR", "BINARY_OPERATOR"):
        return up.children[0] is node and (up.operator == "=" or up.kind != "BINARY_OPERATOR")
    if up.kind == "UNARY_OPERATOR":
        return up.operator == "&" or "++" in up.operator or "--" in up.operator
    return up.kind in ("CALL_EXPR", "VAR_DECL") and not node.shape.text.startswith("const ")


def _carried_out(walker: Walker, body: Syntax) -> Iterator[Syntax]:
    """The nodes of a loop's body, and of the functions that it calls."""
    seen: set[str] = set()
    waiting = [body]
    while waiting:
        for node in waiting.pop().walk():
            yield node
            called = walker.defined.get(node.refers) if node.kind == "CALL_EXPR" else None
            if called is not None and node.refers not in seen:
                seen.add(node.refers)
                waiting.append(called)


def _leaves(program: SourceProgram, node: Syntax, loop: Syntax) -> bool:
    up = program.parents.get(node)
    while up is not None and up is not loop and up.kind not in (*LOOPS, "SWITCH_STMT"):
        up = program.parents.get(up)
    return up is loop


def _in_lambda(program: SourceProgram, node: Syntax, loop: Syntax) -> bool:
    up = program.parents.get(node)
    while up is not None and up is not loop and up.kind != "LAMBDA_EXPR":
        up = program.parents.get(up)
    return up is not None and up.kind == "LAMBDA_EXPR"


def within(node: Syntax, region: Syntax) -> bool:
    """True for a node in a region of the same file."""
    return node.file == region.file and region.start <= node.start and node.end <= region.end


def offloaded(program: SourceProgram, view: LoopView, members: Mapping[LoopView, ConvertedMembers]) -> list[Edit]:
    """The edits that make a loop over a view a target region."""
    loop, body = view.loop, view.loop.children[-1]
    used = [one for one in members if within(loop, one.region)]
    locals_, maps, inside = [], [], []
    for one in used:
        name, converted = variable_of(one.number), members[one]
        arrays = [f"{name}_{member}" for member in converted.members]
        locals_ += [f"auto *{array} = {name}.soa_p_{m}; " for array, m in zip(arrays, converted.members, strict=True)]
        locals_.append(f"const std::size_t {name}_count_of = {name}.soa_count;\n")
        for array, member in zip(arrays, converted.members, strict=True):
            maps.append(f"map({'tofrom' if member in converted.writes else 'to'}: {array}[0:{name}_count_of])")
        inside.append(f"const {space_of(one.number)}::soa_elements {name}{{{', '.join([*arrays, f'{name}_count_of'])}}};\n")
    own = variable_of(view.number)
    assert view.variable is not None
    head = (
        f"{''.join(locals_)}#pragma omp target teams distribute parallel for {' '.join(maps)}\n"
        f"for (std::size_t {own}_at = 0; {own}_at < {own}_count_of; ++{own}_at) {{\n"
        f"{''.join(inside)}auto &&{view.variable.name} = {own}[{own}_at];\n"
    )
    text = program.texts[loop.file]
    end = loop.end + (text[loop.end : loop.end + 1] == ";")
    return [Edit(view.start, loop.start, ""), Edit(loop.start, body.start, f"\n{{ {head}"), Edit(end, end, "\n} }")]
