"""The C++ that the new source begins with: classes of each view, and copies of functions that take elements."""

from __future__ import annotations

from collections.abc import Iterable

from layout_advise.apply.rewrite.cxx.templates import templates
from layout_advise.apply.rewrite.program import SourceProgram
from layout_advise.apply.rewrite.syntax import Edit, Syntax, applied
from layout_advise.views.accesses import ConvertedMembers, Copy, Walked
from layout_advise.views.annotations import LoopView, refused
from layout_advise.views.names import space_of, variable_of

HEADERS = ("cstddef", "cstdint", "cstring", "iterator", "memory", "type_traits")
TIMED_HEADERS = ("chrono", "cstdio")


def prelude(views: Iterable[LoopView], timed: bool) -> str:
    """The first lines of the new source: headers, and where times are counted."""
    text = "".join(f"#include <{name}>\n" for name in (*HEADERS, *(TIMED_HEADERS if timed else ())))
    if timed:
        # Objects end in the opposite order, and each tells its times as it ends.
        named = [(view.number, f"{view.loop.file.name}:{view.loop.line}") for view in views][::-1]
        text += templates("layout_advise.views").get_template("times.hpp.j2").render(named=named)
    return text


def classes(
    program: SourceProgram, view: LoopView, members: ConvertedMembers, walked: Walked, *, openmp: bool, timed: bool
) -> str:
    """The namespace of one view."""
    methods = [method(program, called, walked, copy) for copy, called in walked.copies.items() if copy.on == view.number]
    text = (
        templates("layout_advise.views")
        .get_template("view.hpp.j2")
        .render(
            space=space_of(view.number),
            number=view.number,
            container=view.container,
            record=view.record.text.removeprefix("const "),
            reads=", ".join(members.reads) or "nothing",
            writes=", ".join(members.writes) or "nothing",
            members=members.members,
            ins=members.reads,
            outs=members.writes,
            methods=methods,
            compares=view.number in walked.compared,
            openmp=openmp,
            timed=timed,
        )
    )
    return text + "\n"


def opening(view: LoopView) -> str:
    """The statements before a region."""
    held, viewed, space = f"soa_of_{view.number}", f"soa_view_of_{view.number}", space_of(view.number)
    first = held if view.count else f"std::begin({held})"
    count = f"static_cast<std::ptrdiff_t>({view.count})" if view.count else f"std::end({held}) - std::begin({held})"
    kind = f"{space}::soa_view<typename std::decay<decltype({first})>::type>"
    return (
        f"{{ auto &&{held} = {view.container};\n"
        f"const {kind} {viewed}({first}, {count});\n"
        f"const auto {variable_of(view.number)} = {viewed}.elements();\n"
    )


def method(program: SourceProgram, called: Syntax, walked: Walked, copy: Copy) -> str:
    """A method of the record as one of the view's elements."""
    head = program.texts[called.file][called.start : called.name_at]
    start = called.start
    if "::" in head.rsplit(" ", 1)[-1]:  # defined outside of the class
        start = called.name_at
        result = called.shape.of.text if called.shape.of is not None else "void"
        return _with_edits(program, called, walked, copy, start, f"{_template(copy)}{result} ")
    return _with_edits(program, called, walked, copy, start, _template(copy))


def function(program: SourceProgram, called: Syntax, walked: Walked, copy: Copy) -> str:
    """A copy of a function, as a template over the elements that it takes."""
    before = program.texts[called.file][called.start : called.name_at]
    if before.rstrip().endswith("::"):
        raise refused(called, f"{called.name} is defined outside of its namespace")
    renamed = Edit(called.name_at, called.name_at + len(called.name), walked.name_of(copy))
    return _with_edits(program, called, walked, copy, called.start, _template(copy), renamed)


def _template(copy: Copy) -> str:
    return f"template <{', '.join(f'class soa_E{k}' for k in copy.taken)}> " if copy.taken else ""


def _with_edits(
    program: SourceProgram, called: Syntax, walked: Walked, copy: Copy, start: int, before: str, *further: Edit
) -> str:
    parameters = [child for child in called.children if child.kind == "PARM_DECL"]
    edits = {*walked.edits.get(copy, ()), *further}
    for k in copy.taken:
        one = parameters[k]
        edits.add(Edit(one.start, one.name_at if one.name else one.end, f"soa_E{k} &&"))
    text = program.texts[called.file][start : called.end]
    return before + applied(text, [edit for edit in edits if edit.start >= start], start)
