"""The verifier of the lifted form: each kind of fault is found, and a form without one passes."""

from __future__ import annotations

import pytest

from layout_advise.errors import InvalidFormError
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.ir.lifted import (
    Assign,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Linear,
    LiveIn,
    LiveOut,
    Load,
    Origin,
    Store,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.ir.verify import faults, verify_form

AT = Origin(0x1000)
BASE, COUNT = Val(1, "i64"), Val(2, "i64")
SUM = Var(3, "f64")


def form(*items: Item, out: LiveOut | None = None) -> Lifted:
    live = (LiveIn(BASE, Gpr(7)), LiveIn(COUNT, Gpr(6)))
    return Lifted("f", 0x1000, live, (out,) if out is not None else (), items)


def loop(*items: Item, number: int = 4) -> LiftedLoop:
    return LiftedLoop(Val(number, "i64"), COUNT, items, 0x1000)


def place(counter: int) -> Linear:
    return Linear(0, ((BASE, 1), (Val(counter, "i64"), 8)))


SUMMED = (
    Assign(SUM, Imm("f64", 0), 1),
    loop(
        Load(Val(5, "f64"), place(4), AT),
        Let(Val(6, "i1"), "folt", (Val(5, "f64"), Imm("f64", 0)), AT),
        Goto(1, Val(6, "i1")),
        Let(Val(7, "f64"), "fadd", (SUM, Val(5, "f64")), AT),
        Assign(SUM, Val(7, "f64"), 2),
        Label(1),
    ),
    Store("f64", Linear(0, ((BASE, 1),)), SUM, AT),
)


def test_a_valid_form_has_no_fault() -> None:
    assert not list(faults(form(*SUMMED, out=LiveOut(SUM, Gpr(0)))))


ONE = Let(Val(5, "f64"), "fneg", (Imm("f64", 0),), AT)
FAULTY: dict[str, tuple[tuple[Item, ...], str]] = {
    "value defined twice": ((ONE, ONE), "value 5 is defined 2 times"),
    "value and variable of one number": ((Assign(Var(1, "i64"), BASE, 1),), "have one number"),
    "value read before it is defined": (
        (Store("f64", Linear(0, ((BASE, 1),)), Val(5, "f64"), AT), ONE),
        "not defined there",
    ),
    "value that a jump passes": (
        (
            Let(Val(6, "i1"), "eq", (BASE, COUNT), AT),
            Goto(1, Val(6, "i1")),
            ONE,
            Label(1),
            Store("f64", Linear(0, ((BASE, 1),)), Val(5, "f64"), AT),
        ),
        "not defined there",
    ),
    "counter read behind its loop": ((loop(), LetLinear(Val(5, "i64"), place(4), AT)), "not defined there"),
    "variable that nothing assigns": ((Store("f64", Linear(0, ((BASE, 1),)), SUM, AT),), "not defined there"),
    "jump backwards": ((Label(1), Goto(1, None)), "does not lie ahead"),
    "jump into a loop": ((Goto(1, None), loop(Label(1))), "does not lie ahead"),
    "two labels of one number": ((Label(1), Label(1)), "stands in 2 places"),
    "loop without an end": ((LiftedLoop(Val(4, "i64"), None, (Label(1), Goto(2, None), Label(2)), 0x1000),), "never ends"),
    "sum of different types": ((Let(Val(5, "i64"), "add", (BASE, Imm("i32", 1)), AT),), "add of"),
    "comparison that is no bit": ((Let(Val(5, "i32"), "eq", (BASE, COUNT), AT),), "eq of"),
    "choice by a number": ((Let(Val(5, "i64"), "select", (BASE, BASE, COUNT), AT),), "select of"),
    "extension that is none": ((Let(Val(5, "i32"), "zext", (BASE,), AT),), "zext of"),
    "stored type": ((Store("f32", Linear(0, ((BASE, 1),)), BASE, AT),), "stores a i64 as f32"),
    "assigned type": ((Assign(SUM, BASE, 1),), "assigns a i64 to a f64"),
    "condition that is no bit": ((Goto(1, BASE), Label(1)), "depends on a i64"),
    "atom twice": ((Load(Val(5, "f64"), Linear(0, ((BASE, 1), (BASE, 2))), AT),), "equal atoms"),
    "atom that is a constant": ((Load(Val(5, "f64"), Linear(0, ((Imm("i64", 1), 1),)), AT),), "other operands"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_every_fault_is_found(name: str) -> None:
    items, fault = FAULTY[name]
    assert any(fault in found for found in faults(form(*items)))
    with pytest.raises(InvalidFormError) as error:
        verify_form(form(*items), "a pass")
    assert "not valid after a pass" in str(error.value)


def test_a_value_that_leaves_the_hotspot_is_defined() -> None:
    (fault,) = faults(form(out=LiveOut(Val(9, "i64"), Gpr(0))))
    assert "the end reads" in fault


def test_statements_are_numbered_when_the_form_is_made() -> None:
    """What has a number keeps it; copies and new statements get others."""
    made = form(*SUMMED)
    assert [item.uid for item in everything(made.body)] == list(range(len(list(everything(made.body)))))
    again = Lifted("f", 0x1000, made.live_ins, (), (made.body[2], *made.body, Label(9)))
    uids = [item.uid for item in everything(again.body)]
    assert len(set(uids)) == len(uids)
    assert again.body[0].uid == made.body[2].uid
    assert again.body[2].uid == made.body[1].uid
