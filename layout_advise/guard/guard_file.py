"""The guard as a file: TOML that a reviewer reads, one line a member."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from layout_advise.errors import RunDirError
from layout_advise.guard.policy import GUARD

FORMAT = "layout-advise.guard/1"
HEAD = """\
# The layout of the records that the measured regions use. Review it and commit it; hold every build against it:
#   layout-advise guard --check layout.guard -- ./app
"""


class GuardedMember(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A member: bytes from the begin of the record, and its size; bits of a bit field."""

    at: int
    bytes: int
    type: str
    first_bit: int | None = None
    bits: int | None = None


class GuardedType(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record; ``name`` with its namespaces, ``file`` the base name of the file that declared it."""

    name: str
    bytes: int
    members: dict[str, GuardedMember]
    file: str = ""


class GuardedVariable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plain array or the pointer to one, in ``function`` or (empty) outside of functions."""

    name: str
    type: str
    function: str = ""


class GuardedRegion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A region that rests on the layout. ``uses``: structures and members that it accesses; ``verdict`` the first line of
    its run. ``gain``: how many times as fast it is as in the run ``over``, with its interval. ``times_ns``: the undisturbed
    time of a call in several processes, where the guard was written with ``--measure``."""

    name: str
    symbol: str
    uses: tuple[str, ...]
    verdict: str
    gain: tuple[float, float, float] | None = None
    over: str = ""
    times_ns: tuple[float, ...] = ()


class Guard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    format: str
    program: str
    written: str
    cpu: str
    region: tuple[GuardedRegion, ...] = ()
    type: tuple[GuardedType, ...] = ()
    variable: tuple[GuardedVariable, ...] = ()

    @property
    def names(self) -> str:
        """The names of all that is guarded: ``particle, cell``."""
        return ", ".join([*(one.name for one in self.type), *(one.name for one in self.variable)])


def read_guard(path: Path) -> Guard:
    """The guard in a file. Raises RunDirError where it is none, damaged, or from another version."""
    what, hint = f"cannot read {path}", "write it anew with `layout-advise guard RUN -o FILE`"
    try:
        if path.stat().st_size > GUARD.largest_file:
            raise RunDirError(what, "it is far too large for a guard", hint)
        found = tomllib.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise RunDirError(what, getattr(error, "strerror", None) or f"it is not TOML ({error})", hint) from error
    if found.get("format") != FORMAT:
        raise RunDirError(what, f"its format is {found.get('format')!r}, this version reads {FORMAT!r}", hint)
    try:
        guard = msgspec.convert(found, Guard)
    except msgspec.ValidationError as error:
        raise RunDirError(what, f"it is damaged ({error})", hint) from error
    if not guard.type and not guard.variable:
        raise RunDirError(what, "it guards no type", hint)
    return guard


def guard_text(guard: Guard) -> str:
    """The file's text."""
    return HEAD + "\n".join(_lines(guard)) + "\n"


def _lines(guard: Guard) -> Iterator[str]:
    for key in ("format", "program", "written", "cpu"):
        yield f"{key} = {_value(getattr(guard, key))}"
    for region in guard.region:
        yield from ("", "[[region]]", f"name = {_value(region.name)}", f"symbol = {_value(region.symbol)}")
        yield f"uses = {_value(region.uses)}"
        yield f"verdict = {_value(region.verdict)}"
        if region.gain is not None:
            shown = ", ".join(f"{value:.3g}" for value in region.gain)
            yield f"gain = [{shown}]  # times as fast, and its 95 % interval"
            yield f"over = {_value(region.over)}"
        if region.times_ns:
            yield f"times_ns = [{', '.join(f'{value:.1f}' for value in region.times_ns)}]  # a call, by process"
    for one in guard.type:
        yield from ("", "[[type]]", f"name = {_value(one.name)}", f"file = {_value(one.file)}", f"bytes = {one.bytes}")
        yield "[type.members]"
        yield from _members(one.members)
    for variable in guard.variable:
        yield from ("", "[[variable]]", f"name = {_value(variable.name)}", f"type = {_value(variable.type)}")
        yield f"function = {_value(variable.function)}"


def _members(members: dict[str, GuardedMember]) -> Iterator[str]:
    names = {name: _key(name) for name in members}
    width = max((len(name) for name in names.values()), default=0)
    for name, member in members.items():
        where = f"at = {member.at:>4}, bytes = {member.bytes:>3}, type = {_value(member.type)}"
        bits = "" if member.bits is None else f", first_bit = {member.first_bit}, bits = {member.bits}"
        yield f"{names[name]:<{width}} = {{ {where}{bits} }}"


def _key(name: str) -> str:
    return name if name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name) else _value(name)


def _value(value: object) -> str:
    """A string or a list of strings as TOML; JSON's escapes are a part of TOML's."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    assert isinstance(value, tuple)
    return f"[{', '.join(_value(one) for one in value)}]"
