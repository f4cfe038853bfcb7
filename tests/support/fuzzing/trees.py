"""Damage to data of numbers, texts, lists and mappings, as JSON, TOML and MessagePack hold it."""

from __future__ import annotations

import copy
import json
import marshal
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, reduce
from random import Random
from typing import Any

import msgspec

Place = tuple[Any, Any]
"""A list or a mapping, and the index or the key in it."""
Another = Callable[[], Place]

TEXTS = ("", "\0", "\x1b]0;x\x07", "<script>alert(1)</script>", "../../../../etc/passwd", "%s%n{0}{x}", "é\u202e\U0001f600",
         "-1", "nan", "x" * 5000, "a\nb", "`" * 9, "$(x)", "\ufeff", "[" * 400, "S_{0," * 60)  # fmt: skip
NUMBERS = (
    0,
    -1,
    1,
    2,
    255,
    1 << 31,
    -(1 << 31),
    (1 << 63) - 1,
    -(1 << 63),
    (1 << 64) - 1,
    0.0,
    -0.0,
    1e308,
    -1e308,
    5e-324,
    0.5,
)


def deep(random: Random) -> Any:
    """Lists or mappings in one another."""
    made: Any = 0
    for _ in range(random.choice((3, 40, 200))):
        made = [made] if random.random() < 0.5 else {"x": made}
    return made


def odd(random: Random) -> Any:
    """A value that hardly anything expects."""
    kind = random.randrange(8)
    if kind < 3:
        return random.choice(NUMBERS)
    if kind < 5:
        return random.choice(TEXTS)
    if kind == 5:
        return random.choice((None, True, False, [], {}))
    return [random.choice(NUMBERS)] * random.choice((1, 3, 3000)) if kind == 6 else deep(random)


def places(tree: Any) -> list[Place]:
    """All places in it, from the root on."""
    return list(_places(tree))


def _places(tree: Any) -> Iterator[Place]:
    left = [tree]
    while left:
        node = left.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            yield node, key
            left.append(node[key])


@lru_cache(maxsize=64)
def _routes(packed: bytes) -> tuple[tuple[Any, ...], ...]:
    """The keys on the way to each place of a packed tree; to look for them takes longer than all else."""
    found: list[tuple[Any, ...]] = []
    left: list[tuple[tuple[Any, ...], Any]] = [((), marshal.loads(packed))]
    while left:
        route, node = left.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            found.append((*route, key))
            left.append(((*route, key), node[key]))
    return tuple(found)


def _place(random: Random, tree: Any, routes: Sequence[tuple[Any, ...]]) -> Place:
    """A place that is still there: earlier faults may have taken some away."""
    for _ in range(4):
        *way, last = random.choice(routes)
        try:
            node = reduce(lambda at, key: at[key], way, tree)
            node[last]
        except (KeyError, IndexError, TypeError):
            continue
        if isinstance(node, (dict, list)):
            return node, last
    return random.choice(places(tree) or [([tree], 0)])


def _other(random: Random, place: Place, another: Another) -> None:
    node, key = place
    node[key] = odd(random)


def _near(random: Random, place: Place, another: Another) -> None:
    """A number a little off, or of the other sign."""
    node, key = place
    if isinstance(node[key], (int, float)) and not isinstance(node[key], bool):
        value = node[key]
        node[key] = random.choice((value + 1, value - 1, -value, value * 2, value * 1000, value // 2))
    else:
        _other(random, place, another)


def _gone(random: Random, place: Place, another: Another) -> None:
    node, key = place
    if isinstance(node, list):
        node.pop(key)
    else:
        del node[key]


def _renamed(random: Random, place: Place, another: Another) -> None:
    node, key = place
    if isinstance(node, dict):
        node[random.choice((*TEXTS, "id", "x"))] = node.pop(key)
    else:
        node.insert(key, odd(random))


def _swapped(random: Random, place: Place, another: Another) -> None:
    node, key = place
    other, at = another()
    node[key] = copy.deepcopy(other[at])


def _repeated(random: Random, place: Place, another: Another) -> None:
    node, key = place
    if isinstance(node, list):
        node.extend([node[key]] * random.choice((1, 2, 50)))
    else:
        node[key] = [node[key]] * 2


Way = Callable[[Random, Place, Another], None]
_WAYS: tuple[Way, ...] = (
    _other,
    _near,
    _near,
    _gone,
    _renamed,
    _swapped,
    _repeated,
)


def damaged(random: Random, tree: Any, most: int = 3) -> Any:
    """A copy of ``tree`` with one to ``most`` faults."""
    packed = marshal.dumps(tree)
    routes = _routes(packed)
    if not routes:
        return odd(random)
    changed = marshal.loads(packed)  # several times as fast as copy.deepcopy
    for _ in range(random.randint(1, most)):
        random.choice(_WAYS)(random, _place(random, changed, routes), lambda: _place(random, changed, routes))
    return changed


def as_json(tree: Any) -> bytes:
    """It as JSON, by the quick library where that knows all numbers in it."""
    try:
        return msgspec.json.encode(tree)
    except (ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return json.dumps(tree).encode()


def nested(random: Random, text: str) -> str:
    """``text`` with very many brackets at one place."""
    at = random.randrange(len(text) + 1)
    count = random.choice((500, 20_000))
    return f"{text[:at]}{random.choice(('[', chr(123) + chr(34) + 'x' + chr(34) + ':')) * count}{text[at:]}"


def toml(table: Any) -> str:
    """A table as TOML: subtables and lists are written in one line each. What TOML has no word for is left out."""
    if not isinstance(table, dict):
        return f"x = {_toml_value(table)}\n"
    return "".join(f"{json.dumps(key)} = {_toml_value(value)}\n" for key, value in table.items() if value is not None)


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)} = {_toml_value(one)}" for key, one in value.items() if one is not None]
        return f"{{{', '.join(rows)}}}"
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(one) for one in value if one is not None)}]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
