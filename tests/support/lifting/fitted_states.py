"""States that fit an instruction: it does not trap, and stays within the shared memory."""

from __future__ import annotations

import random

from tests.support.lifting import instruction_forms
from tests.support.lifting.native_oracle import CENTRE, MEMORY, Native


def fitted(form: str, state: Native, r: random.Random) -> Native:
    """The state changed so that ``form`` does not trap and touches only the shared memory."""
    gpr, lanes = list(state.gpr), list(state.lanes)
    name = form.split()[0]
    if form in instruction_forms.DIVISIONS:
        bits = {"cl": 8, "cx": 16, "ecx": 32, "rcx": 64}[form.split()[1]]
        divisor = gpr[1] % 2**bits or 3
        if name == "idiv":  # a small signed dividend whose upper half is its sign
            divisor = divisor if divisor not in (2**bits - 1,) else 5
            dividend = r.getrandbits(bits) - 2 ** (bits - 1)
        else:
            dividend = r.getrandbits(bits)
        if bits == 8:
            gpr[0] = gpr[0] & ~0xFFFF | (abs(dividend) % 100 if name == "idiv" else dividend)
            divisor = divisor if name == "div" else r.randint(1, 120)
        else:
            low = dividend % 2**bits
            high = (dividend >> bits) % 2**bits
            gpr[0] = gpr[0] >> bits << bits | low
            gpr[2] = gpr[2] >> bits << bits | high
        gpr[1] = gpr[1] >> bits << bits | divisor
    if "cmpxchg" in form and r.random() < 0.5:  # what is expected stands there
        at = CENTRE - MEMORY + 32 + 8 * (gpr[6] if gpr[6] < 2**63 else gpr[6] - 2**64)
        gpr[0] = int.from_bytes(state.memory[at : at + 8], "little")
    if form in instruction_forms.STRINGS:
        gpr[6] = CENTRE + r.randint(-64, 64)
    if "gather" in name:
        narrow = name[name.index("gather") + 6] == "d"
        small = [r.randint(-40, 40) for _ in range(8)]
        lanes[20:24] = [small[i] % 2**64 for i in range(4)]
        if narrow:
            lanes[20:24] = [small[2 * i] % 2**32 | small[2 * i + 1] % 2**32 << 32 for i in range(4)]
    if (
        name.startswith(("vpsllv", "vpsrlv", "vpsrav", "psll", "psrl", "psra", "vpsll", "vpsrl", "vpsra"))
        and r.random() < 0.8
    ):
        counts = [
            r.choice((0, 1, 7, 15, 16, 31, 33, 63)) | r.choice((0, 3, 31, 40)) * (2**32 * ("v" in name[5:]))
            for _ in range(8)
        ]
        lanes[20:24], lanes[8:12] = counts[:4], (counts[4:] if form.endswith("xmm2") else lanes[8:12])
    return Native(tuple(gpr), tuple(lanes), state.flags, state.memory)
