"""Random functions in C with loops over arrays, of the kind that the kernels of the lifting tests have."""

from __future__ import annotations

from random import Random

HEAD = """\
#include <math.h>
#include <stdint.h>
#define K(name) double name(double *restrict a, double *restrict b, double *restrict w, int *restrict p, long n)
K(daxpy) { for (long i = 0; i < n; i++) w[i] += 1.5 * a[i]; return 0; }
"""


def source(random: Random, count: int) -> str:
    """A file of so many functions ``k0``, ``k1``, ..., and ``daxpy``."""
    return HEAD + "".join(_function(random, f"k{number}") for number in range(count))


def _function(random: Random, name: str) -> str:
    body = "".join(_loop(random, depth) for depth in (random.choice((1, 1, 1, 2)) for _ in range(random.choice((1, 1, 2)))))
    start = f"double s = 0; long t = {random.randint(-9, 9)}; float f = 0.5f; uint32_t u = 7;"
    return f"K({name}) {{ {start}\n{body}  return s + t + f + u; }}\n"


def _loop(random: Random, depth: int) -> str:
    step, kind = random.choice(("i++", "i++", "i += 2", "i += 3")), random.choice(("long", "int", "unsigned"))
    if depth == 1:
        return f"  for ({kind} i = 0; i < ({kind})n; {step}) {{ {_statements(random, 'i')} }}\n"
    inner = f"for (int j = 0; j < {random.choice(('7', 'i + 1'))}; j++) {{ {_statements(random, 'i * 7 + j')} }}"
    return f"  for (int i = 0; i < {random.randint(2, 5)}; i++) {{ {inner} }}\n"


def _statements(random: Random, index: str) -> str:
    return " ".join(_statement(random, index) for _ in range(random.randint(1, 3)))


def _statement(random: Random, index: str) -> str:
    kind = random.randrange(8)
    if kind == 0:
        return f"if ({_condition(random, index)}) {{ {_simple(random, index)} }} else {{ {_simple(random, index)} }}"
    if kind == 1:
        return f"if ({_condition(random, index)}) {_simple(random, index)}"
    return _simple(random, index)


def _simple(random: Random, index: str) -> str:
    kind = random.randrange(7)
    if kind < 3:
        return f"w[{index}] {random.choice(('=', '+=', '-=', '*='))} {_double(random, index, 3)};"
    if kind == 3:
        return f"s {random.choice(('+=', '-='))} {_double(random, index, 2)};"
    if kind == 4:
        return f"t {random.choice(('+=', '^=', '-='))} {_integer(random, index, 2)};"
    if kind == 5:
        return f"u = u {random.choice(('+', '^', '*'))} (uint32_t){_integer(random, index, 2)};"
    return f"f = f * 0.5f + (float){_double(random, index, 1)};"


def _condition(random: Random, index: str) -> str:
    if random.random() < 0.5:
        return f"{_double(random, index, 1)} {random.choice(('<', '>', '<='))} {_double(random, index, 1)}"
    return f"({_integer(random, index, 1)} {random.choice(('&', '%'))} {random.choice((2, 3, 4))}) == 1"


def _double(random: Random, index: str, depth: int) -> str:
    kind = random.randrange(9)
    if depth == 0 or kind < 3:
        return random.choice((f"a[{index}]", f"b[{index}]", f"w[{index}]", f"a[p[{index}]]", f"{random.uniform(-2, 2):.3f}"))
    left, right = _double(random, index, depth - 1), _double(random, index, depth - 1)
    if kind < 7:
        return f"({left} {random.choice('+-*/')} {right})"
    if kind == 7:
        return f"({left} < {right} ? {right} : {left})"
    return random.choice((f"sqrt(fabs({left}))", f"fabs({left})", f"(double){_integer(random, index, depth - 1)}"))


def _integer(random: Random, index: str, depth: int) -> str:
    if depth == 0 or random.random() < 0.3:
        return random.choice((f"p[{index}]", "(int)u", f"{random.randint(-99, 99)}", f"(int)({index})"))
    left, right = _integer(random, index, depth - 1), _integer(random, index, depth - 1)
    kind = random.randrange(4)
    if kind == 0:
        return f"(int)((unsigned){left} {random.choice(('<<', '>>'))} {random.randint(0, 9)})"
    return f"(int)((unsigned){left} {random.choice('+-*^&|')} (unsigned){right})"
