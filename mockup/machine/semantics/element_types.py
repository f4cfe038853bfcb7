"""The AVX-512 instructions that have a rule, and the type of the elements that their mask bits govern.

Names are without the ``v``. An instruction encoded with an EVEX prefix that is not here is refused: the rule of its VEX form
may not know of 64 bytes, masks, or where the new form differs.
"""

from __future__ import annotations

from itertools import product

from layout_advise.mockup.ir.effects import Ty

_TYPES: dict[str, Ty] = {"b": "i8", "w": "i16", "d": "i32", "q": "i64", "s": "f32"}
_ORDERS = ("132", "213", "231")
_SIZES: dict[str, Ty] = {"8": "i8", "16": "i16", "32": "i32", "64": "i64"}
DOWN = tuple(f"pmov{kind}{pair}" for kind, pair in product(("", "s", "us"), ("qd", "qw", "qb", "dw", "db", "wb")))
"""Integers made narrower: cut, or clamped to the signed or the unsigned range."""
PIECES = ("32x4", "64x2", "32x8", "64x4")
"""Bits of an element and their number in the pieces of a vector."""
CONVERSIONS: dict[str, Ty] = {
    "cvtps2pd": "f64", "cvtpd2ps": "f32", "cvtdq2pd": "f64", "cvtudq2pd": "f64", "cvtdq2ps": "f32", "cvtudq2ps": "f32",
    "cvtqq2pd": "f64", "cvtuqq2pd": "f64", "cvtqq2ps": "f32", "cvtuqq2ps": "f32",
    **{f"cvt{t}{source}2dq": "i32" for t, source in product(("", "t"), ("ps", "pd"))},
    **{f"cvt{t}{source}2udq": "i32" for t, source in product(("", "t"), ("ps", "pd"))},
    **{f"cvt{t}{source}2qq": "i64" for t, source in product(("", "t"), ("ps", "pd"))},
    **{f"cvt{t}{source}2uqq": "i64" for t, source in product(("", "t"), ("ps", "pd"))},
}  # fmt: skip


def _floats() -> dict[str, Ty]:
    stems = ("add", "sub", "mul", "div", "min", "max", "sqrt", "rndscale")
    scalar = [*stems, *(f"f{n}m{op}{o}" for n, op, o in product(("", "n"), ("add", "sub"), _ORDERS))]
    packed = ("and", "andn", "or", "xor", "mova", "movu", "blendm", "shuf", "permil", "perm", "unpckl", "unpckh")
    names = [f"{stem}{kind}" for stem, kind in product(scalar, ("ps", "pd", "ss", "sd"))]
    names += [f"{stem}{kind}" for stem, kind in product(packed, ("ps", "pd"))]
    names += [f"perm{which}2{kind}" for which, kind in product("ti", ("ps", "pd"))]
    names += [f"fm{op}{o}{kind}" for op, o, kind in product(("addsub", "subadd"), _ORDERS, ("ps", "pd"))]
    names += ["movss", "movsd", "broadcastss", "broadcastsd", "cvtss2sd", "cvtsd2ss"]
    found: dict[str, Ty] = {name: "f32" if name.endswith("s") else "f64" for name in names}
    return found | {"movddup": "f64", "movsldup": "f32", "movshdup": "f32"}


def _integers() -> dict[str, Ty]:
    sized = {
        "bwdq": ("padd", "psub", "pmins", "pmaxs", "pminu", "pmaxu", "pabs", "pblendm", "pbroadcast"),
        "wdq": ("psll", "psrl", "psra", "psllv", "psrlv", "psrav", "pmull", "permt2", "permi2", "perm"),
        "dq": ("pand", "pandn", "por", "pxor", "pternlog", "prol", "pror", "prolv", "prorv", "plzcnt", "align"),
        "bw": ("padds", "paddus", "psubs", "psubus", "pavg"),
    }
    found = {f"{stem}{letter}": _TYPES[letter] for letters, stems in sized.items() for stem in stems for letter in letters}
    found |= {name: _TYPES[name[-1]] for name in ("pmulhw", "pmulhuw", "pmulhrsw", "packsswb", "packuswb")}
    found |= {"packsswb": "i8", "packuswb": "i8", "packssdw": "i16", "packusdw": "i16", "pmaddwd": "i32", "pmulhrsw": "i16"}
    found |= {"pmuludq": "i64", "pmuldq": "i64", "palignr": "i8", "pshufd": "i32", "pshuflw": "i16", "pshufhw": "i16"}
    for half, pair in product("lh", ("bw", "wd", "dq")):
        found[f"punpck{half}{pair}"] = _TYPES[pair[0]]
        found[f"punpck{half}qdq"] = "i64"
    found |= {f"pmov{s}x{pair}": _TYPES[pair[1]] for s, pair in product("sz", ("bw", "bd", "bq", "wd", "wq", "dq"))}
    found |= {name: _TYPES[name[-1]] for name in DOWN}
    return found | {
        f"movdq{a}{size}": ty for a, (size, ty) in product("au", _SIZES.items()) if a == "u" or size in ("32", "64")
    }


def _parts() -> dict[str, Ty]:
    types: dict[str, Ty] = {"f32": "f32", "i32": "i32", "f64": "f64", "i64": "i64"}
    shapes = {"insert": PIECES, "extract": PIECES, "broadcast": ("32x2", *PIECES), "shuf": ("32x4", "64x2")}
    return {
        f"{name}{kind}{shape}": types[f"{kind}{shape[:2]}"] for name in shapes for kind in "fi" for shape in shapes[name]
    }


def _indexed() -> dict[str, Ty]:
    names = product(("gather", "scatter"), "dq")
    floats: dict[str, Ty] = {"ps": "f32", "pd": "f64"}
    found = {f"{name}{index}{kind}": ty for name, index in names for kind, ty in floats.items()}
    return found | {f"p{name}{i}{k}": _TYPES[k] for name, i, k in product(("gather", "scatter"), "dq", "dq")}


def _unmasked() -> dict[str, Ty | None]:
    """Those that have no mask, and those whose result is one."""
    names = (
        "movntps movntpd movntdq movntdqa movq movd movlps movlpd movhps movhpd movhlps movlhps insertps extractps psadbw "
    )
    names += "pslldq psrldq comiss comisd ucomiss ucomisd cvtsi2ss cvtsi2sd cvtusi2ss cvtusi2sd "
    names += "pinsrb pinsrw pinsrd pinsrq pextrb pextrw pextrd pextrq pbroadcastmb2q pbroadcastmw2d cmpps cmppd cmpss cmpsd "
    names += " ".join(f"cvt{t}{s}2{u}si" for t, s, u in product(("", "t"), ("ss", "sd"), ("", "u"))) + " "
    names += " ".join(
        f"{stem}{k}" for stem, k in product(("pcmpeq", "pcmpgt", "pcmp", "pcmpu", "ptestm", "ptestnm"), "bwdq")
    )
    names += " " + " ".join(f"pmovm2{k} pmov{k}2m" for k in "bwdq")
    return dict.fromkeys(names.split())


GRAINS: dict[str, Ty | None] = {**CONVERSIONS, **_floats(), **_integers(), **_parts(), **_indexed(), **_unmasked()}
"""Element type by instruction; None where no mask governs a vector result."""
