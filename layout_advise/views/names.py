"""The names in the new source."""

from __future__ import annotations

THIS = "this"
"""Stands for the object of a method among the variables that are elements."""


def space_of(number: int) -> str:
    """The namespace of a view's classes."""
    return f"soa_view_{number}"


def variable_of(number: int) -> str:
    """The variable that stands for the container."""
    return f"soa_{number}"


def is_field_of(usr: str, record: str) -> bool:
    """True if a USR is that of a field of the record."""
    return bool(record) and usr.startswith(f"{record}@FI@")
