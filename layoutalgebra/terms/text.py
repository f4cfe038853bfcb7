"""The parser of terms, Unicode ``A_256 ⊗ S_{0,1;4}`` and ASCII ``A[256] * S[0,1;4]``: the inverse of printing.

Grammar (⊗ binds closer than ⊕; the size after ``A_`` may stand in braces)::

    sum     = product { ("⊕" | "+") product }
    product = atom { ("⊗" | "*" | "@") atom }
    atom    = "A" index | "S" indices | "(" sum ")"
    indices = "_{" item {"," item} ";" size "}"     (ASCII: [ ] instead of _{ })
    item    = number | start ":" stop [":" step]    (stop excluded)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.sets.index_set import index_set
from layout_advise.layoutalgebra.terms.term import A, Leaf, Term, product, union

_TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+)|(?P<word>[A-Za-z]+)|(?P<sign>[_{}\[\]();:,⊗⊕*@+]))")
_TIMES, _PLUS = "⊗*@", "⊕+"
DEPTH, DIGITS = 100, 20
"""Parentheses within each other, and digits of a number, at most: 2^63 has 19 digits."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: int


def parse(text: str) -> Term:
    """The term that ``text`` describes, Unicode or ASCII.

    Raises :class:`AlgebraError` with line, column and a caret where the text is not a term, and for empty sets, sizes
    below 1 or beyond 2**63.
    """
    if not isinstance(text, str):
        raise AlgebraError("not a term", f"{type(text).__name__} instead of text", "pass a string, as 'A_256 ⊗ S_{0,1;4}'")
    return _Parser(text).whole()


class _Parser:
    """Recursive descent over the tokens of one term."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        self.next = self.depth = 0
        place, end = 0, len(text.rstrip())
        while place < end:
            match = _TOKEN.match(text, place)
            if match is None or match.lastgroup is None:
                start = place + len(text[place:]) - len(text[place:].lstrip())
                raise self.error(f"unexpected {text[start]!r}", start)
            self.tokens.append(_Token(match.lastgroup, match.group(match.lastgroup), match.start(match.lastgroup)))
            place = match.end()
        self.tokens.append(_Token("end", "end of text", end))

    def error(self, why: str, place: int) -> AlgebraError:
        """The error at character ``place``; its note shows the line with a caret below (the error itself is one line)."""
        before = self.text[:place]
        line, column = before.count("\n") + 1, place - (before.rfind("\n") + 1) + 1
        shown = self.text.splitlines()[line - 1] if self.text else ""
        marked = f"{shown[: column - 1]}^{shown[column - 1 :]}"
        error = AlgebraError(f"not a term (line {line}, column {column})", why, f"at the caret: {marked}")
        error.add_note(f"{shown}\n{' ' * (column - 1)}^")
        return error

    def peek(self) -> _Token:
        return self.tokens[self.next]

    def take(self) -> _Token:
        token = self.tokens[self.next]
        self.next = min(self.next + 1, len(self.tokens) - 1)
        return token

    def expect(self, text: str) -> None:
        token = self.take()
        if token.text != text or token.kind == "end":
            raise self.error(f"expected {text!r}, found {token.text!r}", token.place)

    def number(self) -> int:
        token = self.take()
        if token.kind != "number":
            raise self.error(f"expected a number, found {token.text!r}", token.place)
        if len(token.text) > DIGITS:
            raise self.error(f"a number of {len(token.text)} digits: sizes must stay below 2^63", token.place)
        return int(token.text)

    def whole(self) -> Term:
        term = self.sum()
        token = self.peek()
        if token.kind != "end":
            raise self.error(f"expected ⊗, ⊕ or the end, found {token.text!r}", token.place)
        return term

    def sum(self) -> Term:
        start, terms = self.peek().place, [self.product()]
        while self.peek().kind == "sign" and self.peek().text in _PLUS:
            self.take()
            terms.append(self.product())
        return self.checked(start, lambda: union(terms))

    def product(self) -> Term:
        start, factors = self.peek().place, [self.atom()]
        while self.peek().kind == "sign" and self.peek().text in _TIMES:
            self.take()
            factors.append(self.atom())
        return self.checked(start, lambda: product(factors))

    def atom(self) -> Term:
        token = self.take()
        if token.text == "(":
            self.depth += 1
            if self.depth > DEPTH:
                raise self.error(f"more than {DEPTH} parentheses within each other", token.place)
            term = self.sum()
            self.expect(")")
            self.depth -= 1
            return term
        if token.text == "A":
            size = self.array_size()
            return self.checked(token.place, lambda: A(size))
        if token.text == "S":
            return self.structure(token.place)
        raise self.error(f"expected A, S or a parenthesis, found {token.text!r}", token.place)

    def array_size(self) -> int:
        opening = self.take()
        if opening.text == "[":
            size, closing = self.number(), "]"
        elif opening.text == "_" and self.peek().text == "{":
            self.take()
            size, closing = self.number(), "}"
        elif opening.text == "_":
            return self.number()
        else:
            raise self.error(f"expected '_' or '[' after A, found {opening.text!r}", opening.place)
        self.expect(closing)
        return size

    def structure(self, start: int) -> Term:
        opening = self.take()
        if opening.text not in ("_", "["):
            raise self.error(f"expected '_{{' or '[' after S, found {opening.text!r}", opening.place)
        if opening.text == "_":
            self.expect("{")
        items = [self.item()]
        while self.peek().text == ",":
            self.take()
            items.append(self.item())
        self.expect(";")
        size = self.number()
        self.expect("}" if opening.text == "_" else "]")
        return self.checked(start, lambda: Leaf(index_set(items), size))

    def item(self) -> range:
        place, numbers = self.peek().place, [self.number()]
        while self.peek().text == ":" and len(numbers) < 3:
            self.take()
            numbers.append(self.number())
        if len(numbers) == 1:
            return range(numbers[0], numbers[0] + 1)
        if len(numbers) == 3 and numbers[2] == 0:
            raise self.error("a step of 0", place)
        found = range(*numbers)
        if not found:
            raise self.error(f"no index in {':'.join(map(str, numbers))}", place)
        return found

    def checked(self, place: int, build: Callable[[], Term]) -> Term:
        """``build()``, with the place in the text added to what it complains about."""
        try:
            return build()
        except AlgebraError as error:
            raise self.error(error.line(), place) from None
