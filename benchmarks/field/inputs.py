"""Makes inputs for the field's programs, the same ones every time: ``inputs.py KIND FILE NUMBERS...``."""

from __future__ import annotations

import math
import random
import struct
import sys
from array import array
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

SEED = 23
LETTERS = "etaoinshrdlcumwfgypbvk"


def text(path: Path, kib: int) -> None:
    """Words of a made-up language, frequent ones often, with numbers and punctuation."""
    draw = random.Random(SEED)
    words = ["".join(draw.choices(LETTERS, k=draw.randint(2, 9))) for _ in range(4000)]
    weights = list(accumulate(1 / (rank + 2) for rank in range(len(words))))
    parts: list[str] = []
    length = 0
    while length < kib * 1024:
        line = " ".join(draw.choices(words, cum_weights=weights, k=draw.randint(6, 14)))
        line += draw.choice((".", ",", "", f" {draw.randint(0, 9999)}")) + "\n"
        parts.append(line)
        length += len(line)
    path.write_text("".join(parts)[: kib * 1024])


def wav(path: Path, seconds: int, rate: int = 44100, channels: int = 2) -> None:
    """Tones that change twice a second, with some noise: 16 bits a sample."""
    draw = random.Random(SEED)
    noise = [draw.randint(-300, 300) for _ in range(4099)]
    samples = array("h")
    for n in range(seconds * 2):
        first, second = (2 * math.pi * 110.0 * 2 ** (draw.randint(0, 36) / 12) / rate for _ in range(2))
        for k in range(rate // 2):
            value = int(9000 * math.sin(first * k) + 7000 * math.sin(second * k)) + noise[(k * 7 + n) % 4099]
            for channel in range(channels):
                samples.append(value - channel * value // 5)
    frames = samples.tobytes()
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(frames), b"WAVE", b"fmt ", 16, 1, channels, rate,
                       rate * channels * 2, channels * 2, 16, b"data", len(frames))  # fmt: skip
    path.write_bytes(head + frames)


def pcm(path: Path, seconds: int, rate: int = 48000, channels: int = 2) -> None:
    """The samples of :func:`wav` without a header."""
    wav(path, seconds, rate, channels)
    path.write_bytes(path.read_bytes()[44:])


def ppm(path: Path, tiles: int, size: int = 400) -> None:
    """A picture of ``tiles`` times ``tiles`` squares with gradients, discs and noise: binary PPM."""
    draw = random.Random(SEED)
    discs = [(draw.randrange(size), draw.randrange(size), draw.randrange(size // 5), draw.randrange(256)) for _ in range(20)]
    rows = bytearray()
    for y in range(size):
        near = [(x0, r * r - (y - y0) ** 2, c) for x0, y0, r, c in discs if abs(y - y0) < r]
        noise = draw.randbytes(size)
        line = bytearray()
        for x in range(size):
            red, green = x * 255 // size, y * 255 // size
            for x0, left, c in near:
                if (x - x0) ** 2 < left:
                    red, green = c, 255 - c
            line += bytes((red & 240 | noise[x] & 15, green & 240 | noise[x] >> 4, (x ^ y) & 255))
        rows += line * tiles
    path.write_bytes(b"P6\n%d %d\n255\n" % (size * tiles, size * tiles) + bytes(rows) * tiles)


def pbm(path: Path, width: int, height: int) -> None:
    """Black shapes on white with rough outlines: binary PBM."""
    rows = bytearray()
    for y in range(height):
        bits = 0
        for x in range(width):
            ink = math.sin(x / 17) * math.cos(y / 23) + 0.4 * math.sin(x / 3 + y / 5) > 0.2
            bits = bits << 1 | ink
            if x % 8 == 7:
                rows.append(bits & 255)
    path.write_bytes(b"P4\n%d %d\n" % (width, height) + bytes(rows))


def points(path: Path, count: int, dimension: int = 3, heading: str = "") -> None:
    """Points in the unit cube, a line each; ``heading`` says how they are told: qhull, node (tetgen), voro, plain."""
    draw = random.Random(SEED)
    lines = {"qhull": [str(dimension), str(count)], "node": [f"{count} {dimension} 0 0"]}.get(heading, [])
    for n in range(count):
        numbers = " ".join(f"{draw.random():.9f}" for _ in range(dimension))
        lines.append(f"{n} {numbers}" if heading in ("node", "voro") else numbers)
    path.write_text("\n".join(lines) + "\n")


def cnf(path: Path, variables: int, clauses: int, seed: int = SEED) -> None:
    """A random 3-SAT problem."""
    draw = random.Random(seed)
    lines = [f"p cnf {variables} {clauses}"]
    for _ in range(clauses):
        chosen = draw.sample(range(1, variables + 1), 3)
        lines.append(" ".join(str(v if draw.random() < 0.5 else -v) for v in chosen) + " 0")
    path.write_text("\n".join(lines) + "\n")


def family(letters: str, count: int, length: int, change: float, gaps: float = 0.0) -> list[str]:
    """Sequences that descend from one another."""
    draw = random.Random(SEED)
    found = ["".join(draw.choices(letters, k=length))]
    while len(found) < count:
        parent = draw.choice(found)
        child = [draw.choice(letters) if draw.random() < change else letter for letter in parent]
        if gaps:
            child = [letter for letter in child if draw.random() > gaps]
        found.append("".join(child))
    return found


def fasta(path: Path, kind: str, count: int, length: int, gaps: int = 0) -> None:
    """Related sequences: ``dna`` or ``protein``; ``gaps``: letters lost in a thousand."""
    letters = "ACGT" if kind == "dna" else "ACDEFGHIKLMNPQRSTVWY"
    told = (f">s{n}\n{sequence}\n" for n, sequence in enumerate(family(letters, count, length, 0.08, gaps / 1000)))
    path.write_text("".join(told))


def reads(path: Path, genome: str, length: int, count: int, read: int) -> None:
    """A genome (written to ``genome``) and reads of it with errors."""
    draw = random.Random(SEED)
    whole = "".join(draw.choices("ACGT", k=length))
    Path(genome).write_text(f">genome\n{whole}\n")
    lines = []
    for n in range(count):
        start = draw.randrange(length - read)
        errors = (draw.choice("ACGT") if draw.random() < 0.08 else letter for letter in whole[start : start + read])
        lines.append(f">r{n}\n{''.join(errors)}\n")
    path.write_text("".join(lines))


def graph(path: Path, side: int) -> None:
    """A grid of ``side`` cubed places with some far edges, as METIS reads it."""
    draw = random.Random(SEED)
    count = side**3
    edges: list[set[int]] = [set() for _ in range(count)]
    for n in range(count):
        near = (n + 1 if (n + 1) % side else None, n + side if n // side % side < side - 1 else None, n + side * side)
        far = draw.randrange(count) if draw.random() < 0.1 else None
        for other in (*near, far):
            if other is not None and other < count and other != n:
                edges[n].add(other)
                edges[other].add(n)
    lines = [f"{count} {sum(map(len, edges)) // 2}"]
    lines += [" ".join(str(other + 1) for other in sorted(mine)) for mine in edges]
    path.write_text("\n".join(lines) + "\n")


def lp(path: Path, plants: int, places: int) -> None:
    """A transport problem with side conditions, in CPLEX' format."""
    draw = random.Random(SEED)
    cost = {(i, j): draw.randint(5, 90) for i in range(plants) for j in range(places)}
    lines = ["Minimize", " cost:"]
    lines += [f"  + {c} x{i}_{j}" for (i, j), c in cost.items()]
    lines.append("Subject To")
    for i in range(plants):
        lines.append(f" s{i}: " + "\n  ".join(f"+ x{i}_{j}" for j in range(places)) + f" <= {places * 14}")
    for j in range(places):
        lines.append(f" d{j}: " + "\n  ".join(f"+ x{i}_{j}" for i in range(plants)) + f" >= {plants * draw.randint(5, 11)}")
    for k in range(plants):
        some = draw.sample(sorted(cost), 12)
        lines.append(
            f" m{k}: " + " ".join(f"+ {draw.randint(1, 9)} x{i}_{j}" for i, j in some) + f" >= {draw.randint(20, 60)}"
        )
    path.write_text("\n".join([*lines, "End"]) + "\n")


def mps(path: Path, plants: int, places: int) -> None:
    """The transport problem without side conditions, in free MPS."""
    draw = random.Random(SEED)
    lines = ["NAME transport", "ROWS", " N cost", *(f" L s{i}" for i in range(plants)), *(f" G d{j}" for j in range(places))]
    lines.append("COLUMNS")
    for i in range(plants):
        for j in range(places):
            lines.append(f" x{i}_{j} cost {draw.randint(5, 90)} s{i} 1")
            lines.append(f" x{i}_{j} d{j} 1")
    lines += ["RHS", *(f" RHS s{i} {places * 14}" for i in range(plants))]
    lines += [*(f" RHS d{j} {plants * draw.randint(5, 11)}" for j in range(places)), "ENDATA"]
    path.write_text("\n".join(lines) + "\n")


def json(path: Path, count: int) -> None:
    """An array of records."""
    draw = random.Random(SEED)
    names = ["".join(draw.choices(LETTERS, k=8)) for _ in range(500)]
    told = (
        f'{{"id": {n}, "name": "{draw.choice(names)}", "x": {draw.random():.6f}, "tags": [{draw.randint(0, 9)}, {n % 7}], '
        f'"on": {"true" if n % 3 else "false"}}}'
        for n in range(count)
    )
    path.write_text("[" + ",\n".join(told) + "]\n")


def samples(path: Path, count: int, features: int) -> None:
    """Two classes of points with overlapping clouds, as LIBSVM reads them."""
    draw = random.Random(SEED)
    lines = []
    for n in range(count):
        sign = 1 if n % 2 else -1
        numbers = (f"{k + 1}:{draw.gauss(sign * 0.35, 1):.5f}" for k in range(features))
        lines.append(f"{sign:+d} {' '.join(numbers)}")
    path.write_text("\n".join(lines) + "\n")


def labels(path: Path, count: int) -> None:
    """Labelled sentences, as fastText reads them."""
    draw = random.Random(SEED)
    words = ["".join(draw.choices(LETTERS, k=draw.randint(3, 8))) for _ in range(3000)]
    lines = []
    for _ in range(count):
        label = draw.randrange(8)
        some = [
            words[min(2999, int(draw.expovariate(1 / 250)) + 300 * (label if draw.random() < 0.5 else 0))] for _ in range(14)
        ]
        lines.append(f"__label__{label} {' '.join(some)}")
    path.write_text("\n".join(lines) + "\n")


KINDS: dict[str, Callable[..., None]] = {
    one.__name__: one for one in (text, wav, pcm, ppm, pbm, points, cnf, fasta, reads, graph, lp, mps, json, samples, labels)
}


def main() -> None:
    """Makes one file."""
    kind, path, *numbers = sys.argv[1:]
    KINDS[kind](Path(path), *(int(word) if word.lstrip("-").isdigit() else word for word in numbers))


if __name__ == "__main__":
    main()
