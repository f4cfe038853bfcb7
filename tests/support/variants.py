"""Variants by the names that reports and files have for them."""

from __future__ import annotations

import re

from layout_advise.mockup.timing.variants import Form, Promise, Variant

_NAME = re.compile(
    r"(?P<layout>[a-z0-9.']+?)(-(?P<promise>restrict|lanes|simd))?"
    r"(-(?P<form>again|scalar|unrolled|blocks|placed|replay|wrong|wrong-writes|wrong-values))?(@(?P<place>\d))?(?P<converted>\+conversion)?"
)


def variant(name: str) -> Variant:
    """The variant that ``str`` gives ``name``."""
    found = _NAME.fullmatch(name)
    assert found is not None, name
    promise: Promise = found["promise"] or "plain"  # type: ignore[assignment]
    form: Form = found["form"] or ""  # type: ignore[assignment]
    result = Variant(found["layout"], promise, form, int(found["place"] or 0), bool(found["converted"]))
    assert str(result) == name
    return result


def variants(*names: str) -> tuple[Variant, ...]:
    """Several of them."""
    return tuple(map(variant, names))
