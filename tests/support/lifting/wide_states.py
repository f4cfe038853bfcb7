"""Random states of the processor with AVX-512."""

from __future__ import annotations

import random

from tests.support.lifting.native_oracle import Native
from tests.support.lifting.random_states import a_state, lanes_of


def a_mask(r: random.Random) -> int:
    return r.choice((0, 2**64 - 1, r.getrandbits(64), r.getrandbits(64), r.getrandbits(64), 1 << r.randrange(16)))


def a_wide_state(r: random.Random, kind: int) -> Native:
    plain = a_state(r, kind)
    lanes = lanes_of(kind, 256, r)
    for register in (1, 2, 17, 18):  # equal neighbours now and then, so that equality compares have something to find
        if r.random() < 0.3:
            lanes[8 * register : 8 * register + 8] = lanes[8 * register + 8 : 8 * register + 16]
    if r.random() < 0.3:
        lanes[144 : 144 + 8] = lanes[24:32]
    return Native(plain.gpr, tuple(lanes), plain.flags, plain.memory, tuple(a_mask(r) for _ in range(8)))


def fitted(form: str, state: Native, r: random.Random) -> Native:
    """The state with small indices, or with counts that shift by something, in register 5."""
    lanes, name = list(state.lanes), form.split()[0]
    if "gather" in name or "scatter" in name:
        narrow = name[name.index("ter" if "scatter" in name else "her") + 3] == "d"
        small = [r.randint(-20, 20) for _ in range(16)]
        if narrow:
            lanes[40:48] = [small[2 * i] % 2**32 | small[2 * i + 1] % 2**32 << 32 for i in range(8)]
        else:
            lanes[40:48] = [small[i] % 2**64 for i in range(8)]
    elif name.startswith(("vpsl", "vpsr")) and r.random() < 0.8:
        step = {"w": 16, "d": 32, "q": 64}[name[-1]] if "v" in name[5:] else 64
        counts = [sum(r.choice((0, 1, 7, 15, 16, 31, 33, 63)) << at for at in range(0, 64, step)) for _ in range(8)]
        lanes[40:48] = counts
    return Native(state.gpr, tuple(lanes), state.flags, state.memory, state.masks)
