"""Types as text that does not depend on the compiler that described them, and what of that text is layout.

gcc writes ``long int`` and clang ``long`` for the same type; a guard must not see a difference. Scalars get one name for
each encoding and size.
"""

from __future__ import annotations

import re

from elftools.dwarf.die import DIE

from layout_advise.tracer.program.dwarf_types import array_dims, size_of, strip, type_name
from layout_advise.tracer.program.entries.attributes import follow, number, text
from layout_advise.tracer.program.entries.tree import parent

# by DW_ATE encoding and size in bytes (DWARF 5, section 7.8)
_SCALARS = {
    (2, 1): "bool",
    (4, 2): "_Float16",
    (4, 4): "float",
    (4, 8): "double",
    (4, 16): "long double",
    (5, 1): "signed char",
    (5, 2): "short",
    (5, 4): "int",
    (5, 8): "long",
    (5, 16): "__int128",
    (6, 1): "char",
    (7, 1): "unsigned char",
    (7, 2): "unsigned short",
    (7, 4): "unsigned int",
    (7, 8): "unsigned long",
    (7, 16): "unsigned __int128",
    (8, 1): "unsigned char",
}
_SIZES = {name: size for (_, size), name in _SCALARS.items()}


def type_text(die: DIE | None) -> str:
    """The type in C's words: ``double``, ``node *``, ``float[4][4]``; typedefs of scalars are resolved."""
    bare = strip(die)
    if bare is None:
        return "void"
    if bare.tag == "DW_TAG_base_type":
        known = _SCALARS.get((number(bare, "DW_AT_encoding") or 0, size_of(bare)))
        return known or text(bare) or "?"
    if bare.tag in ("DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type"):
        target = type_text(follow(bare, "DW_AT_type"))
        return f"{target}{'' if target.endswith('*') else ' '}*"
    if bare.tag == "DW_TAG_array_type":
        return type_text(follow(bare, "DW_AT_type")) + "".join(f"[{n or ''}]" for n in array_dims(bare))
    if bare.tag == "DW_TAG_enumeration_type":
        return f"enum {text(bare) or ''}".rstrip()
    # of a template of the library the arguments are written in too many ways
    return type_name(die).split("<")[0] if of_library(bare) else type_name(die)


def of_library(record: DIE) -> bool:
    """Tells a record of C++'s library: its insides are not the program's, and clang often leaves them out."""
    around = parent(record)
    while around is not None and around.tag not in ("DW_TAG_compile_unit", "DW_TAG_type_unit"):
        if around.tag == "DW_TAG_namespace" and text(around) in ("std", "__gnu_cxx"):
            return True
        around = parent(around)
    return False


def plain_name(name: str) -> str:
    """A type's name without what compilers write differently: ``box<double, 4UL> >`` and ``box<double,4>>``."""
    return re.sub(r"(\d)[uUlL]+\b", r"\1", name).replace(" >", ">").replace(", ", ",")


def shape(written: str) -> str:
    """The part of such a text that is layout: scalars by their sizes, dimensions and pointers as they are."""
    found = re.fullmatch(r"(.*?)((?: ?[*]+| ?\[\d*\])*)", written, re.DOTALL)
    assert found is not None  # the first group takes whatever there is
    scalar = found[1].strip()
    return f"{_SIZES.get(scalar, plain_name(scalar))}{found[2].replace(' ', '')}"
