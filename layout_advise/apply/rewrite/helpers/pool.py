"""Elements that a program allocates one by one, in one pool: what stands for a pointer is the element's number, 0 for none.

The pool is one range of addresses, reserved and not yet backed by memory, in which each group of members is an array. So an
access needs the number and where the pool begins; a link in an element takes four bytes. What was given back is taken again
first. Numbers have no neighbours: arrays of elements and pointer arithmetic are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from layout_advise.apply.rewrite.fields import NUMBER_BYTES
from layout_advise.apply.rewrite.program import Refusal, SourceProgram
from layout_advise.apply.rewrite.target import FieldGroup, Target

RESERVED = 1 << 36
"""Bytes of addresses that the pool of one record reserves at most."""
MOST = (1 << 32) - 1
"""Numbers of elements."""
SERVED = {"there", "same", "load", "store", "filled", "taken", "emptied", "freed"}
"""The helpers that a pool has."""
THREADS = {"pthread_create", "thrd_create", "clone", "thread", "jthread", "async"}


def serves(target: Target, helper: str) -> bool:
    """True if a generated function of that name works on what stands for pointers to the record."""
    return not target.pooled or helper in SERVED or helper in {target.accessor(field) for field in target.fields}


def obstacles(program: SourceProgram, target: Target) -> Iterator[Refusal]:
    """Places that a pool does not serve: threads, and records in which no freed element can be noted."""
    for unit in program.units:
        for top in unit.declarations:
            for node in top.walk():
                if node.kind == "CALL_EXPR" and node.foreign and node.name in THREADS:
                    yield Refusal(node.file, node.line, f"{node.name}: threads would share the pool")
                if node.kind.startswith("OMP_PARALLEL"):
                    yield Refusal(node.file, node.line, "threads would share the pool")
    if all(group.size < NUMBER_BYTES for group in target.groups):
        record = next(node for node in program.declared[target.usr] if node.defines)
        yield Refusal(record.file, record.line, f"none of its parts has {NUMBER_BYTES} bytes")


def capacity(target: Target) -> int:
    """The elements that a pool has room for, so many that each group of members in it begins with a line."""
    bytes_ = max(1, target.groups[-1].at + target.groups[-1].size)
    return min(RESERVED // bytes_ // 64 * 64, MOST // 64 * 64)


def number_type(target: Target) -> str:
    """The includes and the type that stand before the record."""
    return "\n".join(
        [
            "#include <stddef.h>",
            "#include <stdint.h>",
            "#include <string.h>",
            "#include <sys/mman.h>",
            "#ifndef MAP_ANONYMOUS",
            "#define MAP_ANONYMOUS 0x20",
            "#endif",
            "#ifndef MAP_NORESERVE",
            "#define MAP_NORESERVE 0x4000",
            "#endif",
            "",
            f"/* Stands for a pointer to {target.spelling}: its number in the pool, 0 for none. */",
            f"typedef struct {target.ref} {{",
            "    uint32_t at;",
            f"}} {target.ref};",
            "",
            "",
        ]
    )


def place(target: Target, group: FieldGroup, inner: int) -> str:
    """The expression of the address of what lies ``inner`` bytes behind the begin of a group's part of an element."""
    begin = f"{target.prefix}_pool.base" + (f" + {group.at * capacity(target)}" if group.at else "")
    return f"&((char (*)[{group.size}])({begin}))[p.at + k][{inner}]"


def declared(target: Target) -> str:
    """The pool itself, of which all files have the same."""
    name = f"{target.prefix}_pool"
    return (
        f"/* Elements of {target.spelling} that were taken one by one. */\n"
        f"struct {name} {{\n    char *base;\n    uint32_t used, freed;\n}};\n"
        f"extern struct {name} {name};\n__attribute__((weak)) struct {name} {name};\n"
    )


def functions(target: Target, used: Set[str]) -> list[str]:
    """The functions that take elements and give them back; only those that are used."""
    pool, ref, most = f"{target.prefix}_pool", target.ref, capacity(target)
    whole = (target.groups[-1].at + target.groups[-1].size) * most
    group = next((one for one in target.groups if one.size >= NUMBER_BYTES), target.groups[0])
    link = f"{pool}.base + {group.at * most} + (size_t)%s * {group.size}"
    parts = []
    if used & {"taken", "emptied"}:
        parts.append(
            f"static inline {ref} {target.prefix}_taken(void)\n{{\n"
            f"    {ref} p = {{{pool}.freed}};\n"
            f"    if ({pool}.base == NULL) {{\n"
            f"        void *const at = mmap(NULL, {whole}u, PROT_READ | PROT_WRITE,\n"
            "                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);\n"
            "        if (at == MAP_FAILED)\n            return p;\n"
            f"        {pool}.base = (char *)at;\n"
            f"        {pool}.used = 1;\n    }}\n"
            "    if (p.at != 0)\n"
            f"        memcpy(&{pool}.freed, {link % 'p.at'}, sizeof {pool}.freed);\n"
            f"    else if ({pool}.used < {most}u)\n"
            f"        p.at = {pool}.used++;\n"
            "    return p;\n}\n"
        )
    if "emptied" in used:
        lines = "".join(
            f"        memset({pool}.base + {one.at * most} + (size_t)p.at * {one.size}, 0, {one.size});\n"
            for one in target.groups
        )
        parts.append(
            f"static inline {ref} {target.prefix}_emptied(void)\n{{\n"
            f"    const {ref} p = {target.prefix}_taken();\n    if (p.at != 0) {{\n{lines}    }}\n    return p;\n}}\n"
        )
    if "freed" in used:
        parts.append(
            f"static inline void {target.prefix}_freed({ref} p)\n{{\n    if (p.at == 0)\n        return;\n"
            f"    memcpy({link % 'p.at'}, &{pool}.freed, sizeof {pool}.freed);\n    {pool}.freed = p.at;\n}}\n"
        )
    return parts
