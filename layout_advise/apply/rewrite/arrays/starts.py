"""Arrays that begin with a cache line: the variable is declared so, or what allocates them gives such memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from layout_advise.apply.rewrite.aligned import given_memory
from layout_advise.apply.rewrite.arrays.dimensions import brackets_behind
from layout_advise.apply.rewrite.program import Refusal, SourceProgram, arguments
from layout_advise.apply.rewrite.rewrite import Rewritten, above_comment, outcome
from layout_advise.apply.rewrite.syntax import Edit, Syntax, TranslationUnit
from layout_advise.apply.rewrite.target import LINE
from layout_advise.errors import SourceError

GIVEN = {"malloc": "begun", "calloc": "zeroed", "realloc": "regrown", "aligned_alloc": "begun"}
"""What is called in their place."""
TOLD = {"aligned_alloc": 0, "memalign": 0, "posix_memalign": 1}
"""Which argument of these is the alignment. Of the first one bytes must be a multiple of it."""
HEADERS = {
    "begun": ("stdint", "stdlib"),
    "zeroed": ("stdint", "stdlib", "string"),
    "regrown": ("malloc", "stdlib", "string"),
}
SIZES = {"malloc": (0,), "calloc": (0, 1), "realloc": (1,), "aligned_alloc": (1,), "memalign": (1,), "posix_memalign": (2,)}
"""Which arguments say how many bytes."""
HINT = "choose another layout with --candidate"


def begun(units: Sequence[TranslationUnit], name: str, site: str) -> Rewritten:
    """The array ``name`` from the start of a cache line on, in all units: the variable, or what is allocated at ``site``
    (``file:line``). Raises SourceError where there is no such place, or several."""
    program = SourceProgram(units)
    edits: dict[Path, set[Edit]] = {path: set() for path in program.texts}
    made = _at_site(program, site) if site else _declared(program, name)
    refusals = {one for one in made if isinstance(one, Refusal)}
    for file, found in (one for one in made if not isinstance(one, Refusal)):
        edits[file].add(found)
    return outcome(program, edits, refusals)


def _declared(program: SourceProgram, name: str) -> list[tuple[Path, Edit] | Refusal]:
    """The alignment behind the declarator of a variable. Raises SourceError where there is no such array, or several."""
    own = name.rpartition("::")[2]
    nodes = {
        (node.file, node.start): node
        for nodes in program.declared.values()
        for node in nodes
        if node.kind == "VAR_DECL" and node.name == own and node.shape.form == "array"
    }
    places = {place: node for place, node in nodes.items() if not program.text(node).startswith("extern")}
    if len({node.declares for node in places.values()}) != 1:
        why = f"{len(places)} arrays have that name" if places else f"no variable {own} is an array"
        raise SourceError(f"cannot rewrite {name}", why, HINT)
    found: list[tuple[Path, Edit] | Refusal] = []
    for node in places.values():
        at = _behind(program, node)
        word = f" __attribute__((aligned({LINE})))"
        why = f"a macro declares {own}" if node.in_macro else f"the declaration of {own} is not of a known form"
        found.append((node.file, Edit(at, at, word)) if at >= 0 else Refusal(node.file, node.line, why, node.start))
    return found


def _behind(program: SourceProgram, node: Syntax) -> int:
    """The end of a variable's brackets; -1 where they are those of another type, or a macro's."""
    text, at = program.texts[node.file], node.name_at + len(node.name)
    if node.in_macro or text[node.name_at : at] != node.name:
        return -1
    places = brackets_behind(text, at)
    end = places[-1][1] + 1 if places else at
    return end if re.match(r"\s*([=,;{]|__attribute__)", text[end:]) else -1


def _at_site(program: SourceProgram, site: str) -> list[tuple[Path, Edit] | Refusal]:
    """The call that allocates there, and the function that it calls now. Raises SourceError where no source has that
    line, or several have."""
    file, _, number = site.rpartition(":")
    paths = [path for path in program.texts if path.as_posix().endswith(f"/{file}")]
    if len(paths) != 1:
        why = f"{len(paths)} files are called {file}" if paths else f"no source that was read is called {file}"
        raise SourceError(f"cannot rewrite what is allocated at {site}", why, HINT)
    path, line = paths[0], int(number)
    tops = {top.start: top for unit in program.units for top in unit.declarations if top.file == path}
    calls = {node.start: node for top in tops.values() for node in _calls(program, top, line)}
    if len(calls) != 1:
        why = "several calls there allocate" if calls else "no call of malloc, calloc or realloc is there"
        return [Refusal(path, line, why, min(calls, default=-1))]
    call = next(iter(calls.values()))
    if why := _obstacle(program, call):
        return [Refusal(path, line, why, call.start if call.in_macro else -1)]
    callee = call.children[0]
    given = arguments(call)
    if call.name in TOLD and call.name not in GIVEN:
        told = given[TOLD[call.name]]
        return [(path, Edit(told.start, told.end, str(LINE)))]
    prefix = "from_line"
    while any(re.search(rf"\b{prefix}_", text) for text in program.texts.values()):
        prefix += "_"
    used = GIVEN[call.name]
    text = program.texts[path]
    around = max((top for top in tops.values() if top.start <= call.start < top.end), key=lambda top: top.start)
    before = above_comment(text, text.rfind("\n", 0, around.start) + 1)
    includes = "".join(f"#include <{header}.h>\n" for header in HEADERS[used])
    return [
        (path, Edit(callee.start, given[1].start if call.name in TOLD else given[0].start, f"{prefix}_{used}(")),
        (path, Edit(before, before, given_memory(prefix, LINE, {used}).lstrip("\n") + "\n")),
        (path, Edit(0, 0, includes)),
    ]


def _calls(program: SourceProgram, top: Syntax, line: int) -> Iterator[Syntax]:
    """The allocating expressions on that line, within a declaration at the top."""
    for node in top.walk():
        allocates = node.kind == "CXX_NEW_EXPR" or (node.kind == "CALL_EXPR" and node.name in (*GIVEN, *TOLD))
        if allocates and node.line <= line <= node.line + program.text(node).count("\n"):
            yield node


def _obstacle(program: SourceProgram, call: Syntax) -> str:
    """Why this call cannot be another one; empty where it can."""
    if call.kind == "CXX_NEW_EXPR":
        return "new gives memory that begins anywhere, and delete takes no other"
    if call.in_macro:
        return f"a macro calls {call.name}"
    if not call.foreign:
        return f"{call.name} is a function of the program's own"
    given = arguments(call)
    if _is_allocators(program, call, [given[k] for k in SIZES[call.name]]):
        return f"{call.name} is called by an allocator of the program's own, which gives other memory, too"
    told = program.text(given[TOLD[call.name]]) if call.name in TOLD else "0"
    if not told.isdigit() or int(told) >= LINE:
        return f"{call.name} is told to align to {told}"
    return ""


def _is_allocators(program: SourceProgram, call: Syntax, sizes: Sequence[Syntax]) -> bool:
    """True where a function is handed how many bytes: nothing but its parameters says it, and no ``sizeof``."""
    up = program.parents.get(call)
    while up is not None and up.kind not in ("FUNCTION_DECL", "CXX_METHOD"):
        up = program.parents.get(up)
    own = {child.declares for child in up.children if child.kind == "PARM_DECL"} if up is not None else set()
    parts = [part for size in sizes for part in size.walk()]
    named = [part for part in parts if part.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR", "CXX_UNARY_EXPR")]
    return bool(named) and all(part.kind == "DECL_REF_EXPR" and part.refers in own for part in named)
