"""Forms of instructions with other registers, displacements and constants than those of ``instruction_forms``."""

from __future__ import annotations

import re
from random import Random

from tests.support.lifting import instruction_forms, wide_forms

_FAMILIES = [
    ("al", "ax", "eax", "rax"), ("cl", "cx", "ecx", "rcx"), ("dl", "dx", "edx", "rdx"), ("bl", "bx", "ebx", "rbx"),
    *((f"r{n}b", f"r{n}w", f"r{n}d", f"r{n}") for n in (10, 11, 12, 13, 14, 15)),
]  # fmt: skip
_GENERAL = {name: (row, size) for row, names in enumerate(_FAMILIES) for size, name in enumerate(names)}
_IMPLICIT = ("mul ", "imul c", "div", "idiv", "cbw", "cwd", "cdq", "cqo", "movs", "stos", "lods", "push", "pop", "leave",
             "xchg", "lock cmpxchg", "mulx", "shl", "shr", "sar", "rol", "ror", "sh")  # fmt: skip
_FIXED_VECTORS = ("blendv", "pblendvb", "gather", "vpsll", "vpsrl", "vpsra", "psll", "psrl", "psra", "vzero")
_CONSTANT = re.compile(r", (\d+)$")
_WITH_BYTE = ("shuf", "blend", "align", "perm", "round", "insertps", "pslldq", "psrldq", "dpp", "cmp")
_WIDE_CONSTANTS = ("vpternlog", "vshuf", "vpshuf", "vpermil", "vpermq", "vpermpd", "valign", "vpalign", "vpslldq", "vpsrldq",
                   "vpsll", "vpsrl", "vpsra", "vprol", "vpror", "kshift", "vpcmp", "vcmp")  # fmt: skip


def varied(random: Random, form: str) -> str:
    """A form like ``form``: the same instruction on other operands."""
    name = form.split()[0]
    if not any(word in name for word in _FIXED_VECTORS):
        numbers = [str(n) for n in range(16)]
        random.shuffle(numbers)
        same = random.random() < 0.15  # all operands are one register
        form = re.sub(r"\b([xy]mm)(\d+)\b", lambda m: m[1] + numbers[0 if same else int(m[2])], form)
    if not form.startswith(_IMPLICIT) and not re.search(r"\b[abcd]h\b", form) and "xmm0" not in form[-4:]:
        rows = list(range(len(_FAMILIES)))
        random.shuffle(rows)
        form = re.sub(r"\b[a-z]\w{1,3}\b", lambda m: _other(m[0], rows), form)
    form = _elsewhere(random, form)
    if any(word in name for word in _WITH_BYTE) and not name.startswith(("cmp", "vcmp", "vperm2")):
        bits = 3 if "round" in name else 255
        form = _CONSTANT.sub(lambda m: f", {random.randint(0, bits)}", form)
    return form


def _elsewhere(random: Random, form: str) -> str:
    at, step = random.choice(("rdi", "r8")), random.choice(("rsi", "r9"))
    return form.replace("[rdi+rsi*8+32]", f"[{at}+{step}*8{random.choice((-64, -16, 0, 16, 48, 96)):+d}]")


def varied_wide(random: Random, form: str) -> str:
    """An AVX-512 form like ``form`` on other vector registers, masks, addresses and constants."""
    name = form.split()[0]
    fixed = [5] if re.search(r"mm5\b", form) else []
    numbers = [n for n in range(32) if n not in fixed]
    masks = list(range(1, 8))
    random.shuffle(numbers)
    random.shuffle(masks)
    places = {n: n if n in fixed else numbers.pop() for n in range(32)}
    form = re.sub(r"\b([xyz]mm)(\d+)\b", lambda m: f"{m[1]}{places[int(m[2])]}", form)
    form = re.sub(r"\bk([1-7])\b", lambda m: f"k{masks[int(m[1]) - 1]}", form)
    rows = list(range(len(_FAMILIES)))
    random.shuffle(rows)
    form = re.sub(r"\b[a-z]\w{1,3}\b", lambda m: _other(m[0], rows), form)
    if name.startswith(_WIDE_CONSTANTS):
        form = _CONSTANT.sub(lambda m: f", {random.randint(0, _most(name))}", form)
    return _elsewhere(random, form)


def _most(name: str) -> int:
    """The greatest constant that an AVX-512 instruction takes."""
    return 7 if name.startswith("vpcmp") else 31 if name.startswith("vcmp") else 255


def _other(word: str, rows: list[int]) -> str:
    row, size = _GENERAL.get(word, (-1, 0))
    return word if row < 0 else _FAMILIES[rows[row]][size]


def forms(random: Random, count: int) -> list[str]:
    """So many varied forms."""
    known = [form for form in instruction_forms.every() if form not in (*instruction_forms.STACK, "leave")]
    return [varied(random, random.choice(known)) for _ in range(count)]


def wide(random: Random, count: int) -> list[str]:
    """So many varied forms of AVX-512."""
    known = wide_forms.every()
    return [varied_wide(random, random.choice(known)) for _ in range(count)]
