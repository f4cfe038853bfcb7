"""Calls as C: of machine code that is not lifted, of OpenMP's runtime; and atomic operations.

Calls of machine code are C calls where the registers of the ABI suffice, else inline assembly with each value in its
register. The compiler is told what the callee may change, so that it keeps values as it does around any call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from layout_advise.mockup.emit.scope import Scope
from layout_advise.mockup.ir.effects import BITS, Gpr, Lane
from layout_advise.mockup.ir.lifted import Atomic, RuntimeCall
from layout_advise.mockup.machine.call_abi import INTEGERS, VECTOR_COUNT, register_name
from layout_advise.mockup.machine.openmp_runtime import POINTERS, ROUTINES

MOST_OPERANDS = 28
"""Of inline assembly, besides target and stack pointer: gcc takes 30."""
_TYPES: tuple[tuple[str, frozenset[str]], ...] = (
    ("void", frozenset()),
    ("struct la_i", frozenset({"rax"})),
    ("struct la_d", frozenset({"xmm0"})),
    ("struct la_ii", frozenset({"rax", "rdx"})),
    ("struct la_id", frozenset({"rax", "xmm0"})),
    ("struct la_dd", frozenset({"xmm0", "xmm1"})),
    ("struct la_v", frozenset({"xmm0", "xmm0.1"})),
)
"""What a C function returns, and the registers in which it does so (SysV ABI, 3.2.3)."""
_FLOAT_ARGUMENTS = 8
_INTEGERS = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
_VECTORS = tuple(f"xmm{number}" for number in range(16))


def call_lines(
    name: str, handed: Mapping[Gpr | Lane, str], used: Collection[str], target: str, stack: str | None
) -> list[str]:
    """The statements of a call that is ``handed`` these texts; what it leaves in the registers ``used`` goes to the
    variables of :func:`returned_name` with this ``name``. Empty where inline assembly cannot hold as much."""
    kind = next((kind for kind, registers in _TYPES if registers.issuperset(used)), None)
    arguments = _argument_list(handed)
    if stack is None and kind is not None and arguments is not None:
        return list(_plain_call(name, arguments, used, target, kind))
    lanes = [place for place in handed if isinstance(place, Lane)]
    given = {register_name(place): text for place, text in handed.items()}
    registers = {r.partition(".")[0] for r in (*given, *used)}
    operands = sum(1 + (r in given or f"{r}.1" in given) for r in registers)
    if operands > MOST_OPERANDS or any(lane.index > 1 for lane in lanes) or not registers <= {*_INTEGERS, *_VECTORS}:
        return []
    lines = [f"int64_t {', '.join(returned_name(name, r) for r in sorted(used))};"] if used else []
    lines.append("{")
    lines += [f"    {line}" for line in _variables(registers, given)]
    outputs, clobbers = _operands(registers, given)
    inputs = f'[target] "r"((int64_t)({target}))' + ("" if stack is None else f', [stack] "r"((int64_t)({stack}))')
    code = "LA_CALL" if stack is None else "LA_CALL_ON_STACK"
    lines.append(f"    __asm__ volatile({code} : {outputs} : {inputs} : {clobbers} LA_MORE_CLOBBERS);")
    lines += [f"    {returned_name(name, r)} = {_left_in(r)};" for r in sorted(used)]
    return [*lines, "}"]


def _plain_call(name: str, arguments: list[str], used: Collection[str], target: str, kind: str) -> Iterator[str]:
    """A C call of a function without a prototype: al tells how many floats there are, as for variadic ones."""
    call = f"(({kind} (*)())({target}))({', '.join(arguments)});"
    if kind == "void":
        yield call
        return
    yield f"const {kind} {name} = {call}"
    for register in sorted(used):
        vector, _, lane = register.partition(".")
        part = f"{name}.xmm0[{lane or 0}]" if kind == "struct la_v" else f"{name}.{vector}"
        yield f"const int64_t {returned_name(name, register)} = {f'la_as_i64({part})' if vector[0] == 'x' else part};"


def _argument_list(handed: Mapping[Gpr | Lane, str]) -> list[str] | None:
    """The arguments that make a C compiler put the texts where they belong; None where it would not."""
    lanes = [place for place in handed if isinstance(place, Lane)]
    others = handed.keys() - set(INTEGERS) - set(lanes) - {VECTOR_COUNT}
    if others or any(lane.index > 1 or lane.number >= _FLOAT_ARGUMENTS for lane in lanes):
        return None
    count = max((n + 1 for n, place in enumerate(INTEGERS) if place in handed), default=0)
    found = [f"(int64_t)({handed.get(place, '0')})" for place in INTEGERS[:count]]
    for number in range(max((lane.number for lane in lanes), default=-1) + 1):
        low, high = (handed.get(Lane(number, index)) for index in (0, 1))
        text = f"la_as_f64({low or 0})"
        found.append(text if high is None else f"(la_f64x2_handed){{{text}, la_as_f64({high})}}")
    return found


def returned_name(name: str, register: str) -> str:
    """The variable for what the call ``name`` left in a register."""
    return f"{name}_{register.replace('.', '_')}"


def _variables(registers: Collection[str], given: Mapping[str, str]) -> Iterator[str]:
    for register in sorted(registers):
        low, high = given.get(register), given.get(f"{register}.1")
        if register in _INTEGERS:
            start = "" if low is None else f" = (int64_t)({low})"
            yield f'register int64_t in_{register} __asm__("{register}"){start};'
        else:
            start = "" if low is None and high is None else f" = {{la_as_f64({low or 0}), la_as_f64({high or 0})}}"
            if low is not None and high is None:
                start = f" = LA_LOW(la_as_f64({low}))"
            yield f'register la_f64x2_handed in_{register} __asm__("{register}"){start};'


def _operands(registers: Collection[str], given: Mapping[str, str]) -> tuple[str, str]:
    """What is handed over and what the callee may change besides."""
    outputs = []
    for register in sorted(registers):
        sign = "+" if register in given or f"{register}.1" in given else "="
        outputs.append(f'"{sign}{"r" if register in _INTEGERS else "x"}"(in_{register})')
    clobbers = [f'"{register}"' for register in (*_INTEGERS, *_VECTORS) if register not in registers]
    return ", ".join(outputs), ", ".join((*clobbers, '"rbx"', '"r12"', '"cc"', '"memory"'))


def _left_in(register: str) -> str:
    vector, _, lane = register.partition(".")
    return f"la_as_i64(in_{vector}[{lane or 0}])" if vector.startswith("xmm") else f"in_{register}"


def through_record(handed: Mapping[Gpr | Lane, str], target: str, stack: str) -> list[str]:
    """The statements of a call with any registers, by a record of all of them."""
    lines = [f"call.{record_member(register_name(place))} = {text};" for place, text in handed.items()]
    wide = any(isinstance(place, Lane) and place.index > 1 for place in handed)
    return [*lines, f"call.wide = {int(wide)};", f"la_opaque(&call, {target}, {stack});"]


def record_member(name: str) -> str:
    """The member of ``struct la_call`` that stands for a register."""
    number, _, lane = name.removeprefix("xmm").partition(".")
    return name if name[0] == "r" else f"vector[{number}][{lane or 0}]"


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
