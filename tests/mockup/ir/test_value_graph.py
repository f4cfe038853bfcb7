"""Values that are built of undefined ones."""

from __future__ import annotations

import pytest

from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.value_graph import Graph


@pytest.mark.parametrize(
    ("op", "of", "part"),
    [
        ("lo32", "i64", "i32"),
        ("hi32", "i64", "i32"),
        ("hi16", "i32", "i16"),
        ("hi8", "i16", "i8"),
        ("trunc", "i16", "i8"),
        ("bitcast", "i64", "f64"),
    ],
)
def test_a_part_of_an_undefined_value_is_undefined(op: str, of: Ty, part: Ty) -> None:
    """primer3's `fillMatrix` was not lifted: of a register of which a loop sets the lowest byte the next byte was computed,
    in the block where it was asked for, while a block before it has it on its way out."""
    g = Graph()
    made = g.build(op, part, g.raw("undef", of, (), "clobbered"))
    assert (made.op, made.ty, made.imm) == ("undef", part, "clobbered")
