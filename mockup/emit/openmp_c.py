"""Atomic operations and calls of OpenMP's runtime as C."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.mockup.emit.scope import Scope
from layout_advise.mockup.ir.effects import BITS
from layout_advise.mockup.ir.lifted import Atomic, RuntimeCall
from layout_advise.mockup.machine.openmp_runtime import POINTERS, ROUTINES


def atomic_text(item: Atomic, place: str, args: Sequence[str]) -> str:
    """The statement for an atomic operation at the address ``place``; what stood there goes to ``before``.

    The builtins are full barriers to the compiler, as the instructions are to the processor.
    """
    cell, wide = f"(la_{item.ty} *)({place})", f"(int64_t)(uint{BITS[item.ty]}_t)"
    if item.operation == "cas":
        call = f"__sync_val_compare_and_swap({cell}, {', '.join(args)})"
    elif item.operation == "xchg":
        call = f"__atomic_exchange_n({cell}, {args[0]}, __ATOMIC_SEQ_CST)"
    else:
        call = f"__sync_fetch_and_{item.operation}({cell}, {args[0]})"
    return f"before = {wide}{call};"


def runtime_text(item: RuntimeCall, args: Sequence[str]) -> str:
    """The statements for a call of the runtime; what it gives goes to ``given``."""
    before, handed, left, number = "", [], list(args), 0
    for kind in ROUTINES[item.function].parameters:
        if not item.places or kind not in POINTERS:
            handed.append(left.pop(0))
            continue
        number += 1
        if kind != "o":
            before += f"given[{number}] = {left.pop(0)}; "
        handed.append(f"&given[{number}]")
    return f"{before}given[0] = (int64_t)la_runtime_{item.function}({', '.join(handed)});"


def given_text(name: str) -> str:
    """Returns what a ``Let`` of that name reads."""
    which = name.removeprefix("given.")
    return which if which == "before" else f"given[{which}]"


def shared_variables(scope: Scope) -> list[str]:
    """Declarations of what the statements above write to."""
    lines = ["int64_t before = 0;", "(void)before;"] if scope.atomic else []
    return lines + ([f"int64_t given[{1 + max(2, *scope.runtime.values())}] = {{0}};"] if scope.runtime else [])


def runtime_declarations(scope: Scope) -> str:
    """The functions of the runtime, under names of our own. What they give back in less than 64 bits is only read so, and
    numbers that they have pointers to likewise."""
    lines = []
    for name, places in sorted(scope.runtime.items()):
        types = ["int64_t *" if places and kind in POINTERS else "int64_t" for kind in ROUTINES[name].parameters]
        lines.append(f'extern int64_t la_runtime_{name}({", ".join(types) or "void"}) __asm__("{name}");')
    return "\n".join(lines)
