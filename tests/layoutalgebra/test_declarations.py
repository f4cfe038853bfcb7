"""Suggested declarations have the types of the source, as C calls them."""

from __future__ import annotations

import pytest

from layout_advise.layoutalgebra.bridges.declarations import declare_structure
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure


@pytest.mark.parametrize(
    ("type_", "size", "called"),
    [
        ("real(kind=8)", 8, "double x;"),
        ("real(kind=4)", 4, "float x;"),
        ("integer(kind=4)", 4, "int32_t x;"),
        ("logical(kind=1)", 1, "int8_t x;"),
        ("_Bool", 1, "_Bool x;"),
        ("unsigned int", 4, "unsigned int x;"),
        ("node *", 8, "uint64_t x;"),
        (None, 4, "uint32_t x;"),
    ],
)
def test_types(type_: str | None, size: int, called: str) -> None:
    """A cell's `real(8)` was a `uint64_t` in what the report suggested."""
    fields = (Field("x", 0, size, type=type_, reads=1), Field("y", 16, 8, type="double", reads=1))
    assert called in declare_structure(Structure("s0", "cells", 4096, 2400, (Dim(100, 24),), fields))
