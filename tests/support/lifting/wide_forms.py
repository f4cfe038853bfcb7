"""AVX-512 instruction forms, in Intel syntax, that the semantics table is checked on against the processor.

Memory as in :mod:`tests.support.lifting.instruction_forms`; register 5 holds small indices, or counts for shifts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

WIDTHS = {"xmm": 16, "ymm": 32, "zmm": 64}
_NAMES = {1: "byte", 2: "word", 4: "dword", 8: "qword", 16: "xmmword", 32: "ymmword", 64: "zmmword"}
SIZES = {"b": 1, "w": 2, "d": 4, "q": 8, "ps": 4, "pd": 8, "ss": 4, "sd": 8}
MASKS = ("{k1}", "{k3}{z}")


def memory(size: int) -> str:
    """A memory operand of ``size`` bytes."""
    return f"{_NAMES[size]} ptr [rdi+rsi*8+32]"


def broadcast(element: int, width: int) -> str:
    """One element of memory for all of a vector."""
    return f"{memory(element)}{{1to{width // element}}}"


def element_of(name: str) -> int:
    """Bytes of an element, by the last letters."""
    scalar_like = name.startswith("vp") and name.endswith(("sd", "ss"))  # vpminsd: signed double words
    return SIZES[name[-1]] if scalar_like else SIZES.get(name[-2:]) or SIZES[name[-1]]


def packed(name: str, sources: int = 2, tail: str = "", element: int = 0, masks: bool = True) -> Iterator[str]:
    """All widths, with and without masks, from registers, memory and (4 and 8 bytes) one element of it."""
    element = element or element_of(name)
    for number, (register, size) in enumerate(WIDTHS.items()):
        last = 31 if number == 1 else 3
        first = f", {register}{'2' if number != 2 else '18'}" * (sources - 1)
        yield f"{name} {register}16{first}, {register}{last}{tail}"
        yield f"{name} {register}1{first}, {memory(size)}{tail}"
        if not masks:
            continue
        for mask in MASKS:
            yield f"{name} {register}1{mask}{first}, {register}{last}{tail}"
            yield f"{name} {register}1{mask}{first}, {memory(size)}{tail}"
        if element >= 4:
            yield f"{name} {register}1{first}, {broadcast(element, size)}{tail}"
            yield f"{name} {register}17{MASKS[number % 2]}{first}, {broadcast(element, size)}{tail}"


def scalar(name: str, tail: str = "") -> Iterator[str]:
    """Scalar operations, with and without masks."""
    size = element_of(name)
    for mask in ("", *MASKS):
        yield f"{name} xmm1{mask}, xmm18, xmm3{tail}"
        yield f"{name} xmm17{mask}, xmm2, {memory(size)}{tail}"


def into_mask(name: str, tail: str = "", element: int = 0) -> Iterator[str]:
    """Compares of all widths, under a mask and without one."""
    element = element or element_of(name)
    for register, size in WIDTHS.items():
        for mask in ("", "{k2}"):
            yield f"{name} k1{mask}, {register}2, {register}3{tail}"
            yield f"{name} k5{mask}, {register}18, {memory(size)}{tail}"
            if element >= 4:
                yield f"{name} k1{mask}, {register}2, {broadcast(element, size)}{tail}"


def floats() -> Iterator[str]:
    for stem, kind in product(("add", "sub", "mul", "div", "min", "max"), ("ps", "pd")):
        yield from packed(f"v{stem}{kind}")
    for stem, kind in product(("add", "sub", "mul", "div", "min", "max", "sqrt"), ("ss", "sd")):
        yield from scalar(f"v{stem}{kind}")
    for kind in ("ps", "pd"):
        yield from packed(f"vsqrt{kind}", 1)
        for imm in (0, 1, 2, 3, 4, 8, 9, 10, 11):
            yield from list(packed(f"vrndscale{kind}", 1, f", {imm}"))[imm::9]
            yield from list(scalar(f"vrndscale{'s' + kind[1]}", f", {imm}"))[imm % 3 :: 3]
        for stem in ("and", "andn", "or", "xor"):
            yield from packed(f"v{stem}{kind}")
        yield f"vmax{kind} zmm1, zmm2, zmm3, {{sae}}"
        yield f"vmin{kind} zmm1{{k1}}, zmm2, zmm3, {{sae}}"
        yield f"vrndscale{kind} zmm1, zmm2, {{sae}}, 9"
        yield f"vcmp{kind} k1, zmm2, zmm3, {{sae}}, 1"
    for size in "dq":
        for stem in ("vpand", "vpandn", "vpor", "vpxor"):
            yield from packed(f"{stem}{size}")
        for imm in (0, 0x55, 0x96, 0xCA, 0xE4, 0xF8, 0x1B, 0xD2, 0xFE, 0xFF):
            yield from list(packed(f"vpternlog{size}", 2, f", {imm}"))[imm % 3 :: 3]
        for imm in range(256):
            yield f"vpternlog{size} xmm1{'{k1}' if imm % 3 == 0 else ''}, xmm2, xmm3, {imm}"


def fused() -> Iterator[str]:
    orders = ("132", "213", "231")
    for stem, order, kind in product(("fmadd", "fmsub", "fnmadd", "fnmsub"), orders, ("ps", "pd")):
        yield from list(packed(f"v{stem}{order}{kind}"))[:: 1 if stem == "fmadd" else 3]
        yield from scalar(f"v{stem}{order}s{kind[1]}")
    for stem, order, kind in product(("fmaddsub", "fmsubadd"), orders, ("ps", "pd")):
        yield from list(packed(f"v{stem}{order}{kind}"))[::4]


def compares() -> Iterator[str]:
    for kind, imm in product(("ps", "pd"), range(32)):
        yield from list(into_mask(f"vcmp{kind}", f", {imm}"))[imm % 6 :: 6]
    for kind, imm in product(("ss", "sd"), range(32)):
        yield f"vcmp{kind} k1, xmm2, xmm3, {imm}"
        yield f"vcmp{kind} k4{{k2}}, xmm2, {memory(SIZES[kind])}, {imm}"
    for sign, size, imm in product(("", "u"), "bwdq", range(8)):
        yield from list(into_mask(f"vpcmp{sign}{size}", f", {imm}", SIZES[size]))[imm % 4 :: 4]
    for stem, size in product(("vpcmpeq", "vpcmpgt", "vptestm", "vptestnm"), "bwdq"):
        yield from into_mask(f"{stem}{size}")
    for name in ("vucomisd", "vcomisd", "vucomiss", "vcomiss"):
        yield f"{name} xmm17, xmm2"
        yield f"{name} xmm17, {memory(SIZES[name[-2:]])}"


def masks() -> Iterator[str]:
    for letter, size in (("b", 1), ("w", 2), ("d", 4), ("q", 8)):
        register = "rcx" if size == 8 else "ecx"
        yield from (f"kmov{letter} k1, k2", f"kmov{letter} k1, {register}", f"kmov{letter} {register}, k3")
        yield from (f"kmov{letter} k1, {memory(size)}", f"kmov{letter} {memory(size)}, k3")
        for stem in ("and", "andn", "or", "xor", "xnor", "add"):
            yield from (f"k{stem}{letter} k1, k2, k3", f"k{stem}{letter} k1, k1, k3")
        yield from (f"kxor{letter} k1, k2, k2", f"kxnor{letter} k1, k1, k1", f"knot{letter} k1, k2", f"knot{letter} k0, k0")
        for stem in ("kortest", "ktest"):
            yield from (f"{stem}{letter} k1, k2", f"{stem}{letter} k3, k3", f"{stem}{letter} k6, k7")
        for imm in (0, 1, 7, 8, 15, 31, 33, 64, 255):
            yield from (f"kshiftl{letter} k1, k2, {imm}", f"kshiftr{letter} k1, k2, {imm}")
        for vector in WIDTHS:
            yield from (f"vpmovm2{letter} {vector}17, k2", f"vpmov{letter}2m k1, {vector}18")
    yield from (f"kunpck{pair} k1, k2, k3" for pair in ("bw", "wd", "dq"))
    yield from (f"vpbroadcast{kind} {vector}1, k2" for kind, vector in product(("mb2q", "mw2d"), WIDTHS))
    for name in ("vblendmps", "vblendmpd", *(f"vpblendm{size}" for size in "bwdq")):
        yield from packed(name)


def moves() -> Iterator[str]:
    names = ["vmovaps", "vmovapd", "vmovups", "vmovupd", "vmovdqa32", "vmovdqa64", *(f"vmovdqu{n}" for n in (8, 16, 32, 64))]
    for name, (register, size) in product(names, WIDTHS.items()):
        place = f"{_NAMES[size]} ptr [rdi+64]" if "mova" in name or "dqa" in name else memory(size)
        for mask in ("", *MASKS):
            yield f"{name} {register}1{mask}, {register}18"
            yield f"{name} {register}17{mask}, {place}"
        yield from (f"{name} {place}, {register}31", f"{name} {place}{{k2}}, {register}1")
    for name, register in product(("vmovntps", "vmovntpd", "vmovntdq"), ("xmm17", "ymm17", "zmm1")):
        yield f"{name} {_NAMES[WIDTHS[register[:3]]]} ptr [rdi+64], {register}"
    for name, size in (("vmovss", 4), ("vmovsd", 8)):
        for mask in ("", *MASKS):
            yield f"{name} xmm1{mask}, xmm18, xmm3"
            yield f"{name} xmm17{mask}, {memory(size)}"
        yield from (f"{name} {memory(size)}, xmm17", f"{name} {memory(size)}{{k2}}, xmm3")
    yield from ("vmovq xmm17, rax", "vmovq rcx, xmm17", "vmovd xmm17, eax", "vmovd ecx, xmm17", "vmovq xmm17, xmm18")
    yield from (
        f"vmovq xmm17, {memory(8)}",
        f"vmovq {memory(8)}, xmm17",
        f"vmovd {memory(4)}, xmm17",
        f"vmovd xmm18, {memory(4)}",
    )
    for name in ("vmovlps", "vmovlpd", "vmovhps", "vmovhpd"):
        yield from (f"{name} xmm17, xmm18, {memory(8)}", f"{name} {memory(8)}, xmm17")
    yield from ("vmovhlps xmm17, xmm18, xmm3", "vmovlhps xmm17, xmm18, xmm3")
    for letter, size in (("b", 1), ("w", 2), ("d", 4), ("q", 8)):
        register = "rcx" if size == 8 else "ecx"
        yield from (f"vpinsr{letter} xmm17, xmm18, {register}, 1", f"vpinsr{letter} xmm17, xmm18, {memory(size)}, 1")
        yield from (f"vpextr{letter} {register}, xmm17, 1", f"vpextr{letter} {memory(size)}, xmm17, 1")
        for vector, mask in product(WIDTHS, ("", *MASKS)):
            yield f"vpbroadcast{letter} {vector}17{mask}, {register}"
            yield f"vpbroadcast{letter} {vector}1{mask}, xmm18"
            yield f"vpbroadcast{letter} {vector}1{mask}, {memory(size)}"
    for imm in (0x10, 0x4E, 0x9A):
        yield f"vinsertps xmm17, xmm18, xmm3, {imm}"
    yield from (
        f"vinsertps xmm17, xmm18, {memory(4)}, 0x68",
        "vextractps eax, xmm17, 3",
        f"vextractps {memory(4)}, xmm17, 2",
    )
    yield from pieces()


def pieces() -> Iterator[str]:
    for kind, (shape, size), mask in product("fi", (("32x4", 16), ("64x2", 16), ("32x8", 32), ("64x4", 32)), ("", *MASKS)):
        small = "xmm" if size == 16 else "ymm"
        for vector in ("ymm", "zmm") if size == 16 else ("zmm",):
            for imm in range(WIDTHS[vector] // size):
                yield f"vinsert{kind}{shape} {vector}17{mask}, {vector}2, {small}3, {imm}"
                yield f"vextract{kind}{shape} {small}17{mask}, {vector}2, {imm}"
            yield f"vinsert{kind}{shape} {vector}1{mask}, {vector}2, {memory(size)}, 1"
            yield f"vextract{kind}{shape} {memory(size)}{mask.removesuffix('{z}')}, {vector}2, 1"
            yield f"vbroadcast{kind}{shape} {vector}1{mask}, {memory(size)}"
    for mask in ("", *MASKS):
        for vector in ("ymm", "zmm"):
            yield from (f"vbroadcastsd {vector}1{mask}, xmm18", f"vbroadcastsd {vector}1{mask}, {memory(8)}")
            yield from (f"vbroadcastf32x2 {vector}1{mask}, xmm18", f"vbroadcasti32x2 {vector}1{mask}, {memory(8)}")
        for vector in WIDTHS:
            yield from (f"vbroadcastss {vector}1{mask}, xmm18", f"vbroadcastss {vector}1{mask}, {memory(4)}")


def conversions() -> Iterator[str]:
    widths = {"ps": 4, "pd": 8, "dq": 4, "udq": 4, "qq": 8, "uqq": 8}
    names = ["ps2pd", "pd2ps", "dq2pd", "udq2pd", "dq2ps", "udq2ps", "qq2pd", "uqq2pd", "qq2ps", "uqq2ps"]
    names += [f"{t}{s}2{kind}" for t, s, kind in product(("", "t"), ("ps", "pd"), ("dq", "udq", "qq", "uqq"))]
    by_size = {16: "xmm", 32: "ymm", 64: "zmm"}
    for name in names:
        source, target = (widths[part] for part in name.removeprefix("t").split("2"))
        mnemonic = f"vcvt{name}"
        for vector, (number, mask) in product(WIDTHS.values(), enumerate(("", *MASKS))):
            count = vector // max(source, target)
            dest = f"{by_size[max(16, count * target)]}{(1, 17, 3)[number]}{mask}"
            yield f"{mnemonic} {dest}, {by_size[max(16, count * source)]}{(18, 2, 3)[number]}"
            yield f"{mnemonic} {dest}, {memory(count * source)}"
            yield f"{mnemonic} {dest}, {memory(source)}{{1to{count}}}"
    for scalar, operand in product(("ss", "sd"), ("ecx", "rcx", memory(4), memory(8))):
        yield from (f"vcvtsi2{scalar} xmm17, xmm2, {operand}", f"vcvtusi2{scalar} xmm1, xmm18, {operand}")
    for t, (scalar, size), sign, register in product(("", "t"), (("ss", 4), ("sd", 8)), ("", "u"), ("eax", "rax")):
        yield f"vcvt{t}{scalar}2{sign}si {register}, xmm17"
        yield f"vcvt{t}{scalar}2{sign}si {register}, {memory(size)}"
    for name, size in (("vcvtss2sd", 4), ("vcvtsd2ss", 8)):
        for mask in ("", *MASKS):
            yield from (f"{name} xmm17{mask}, xmm2, xmm3", f"{name} xmm1{mask}, xmm2, {memory(size)}")
    yield from ("vcvttpd2dq ymm1, zmm2, {sae}", "vcvttps2udq zmm1, zmm2, {sae}", "vcvtps2pd zmm1, ymm2, {sae}")
    yield from widths_of_integers()


def widths_of_integers() -> Iterator[str]:
    by_size = {16: "xmm", 32: "ymm", 64: "zmm"}
    for kind, pair in product(("", "s", "us"), ("qd", "qw", "qb", "dw", "db", "wb")):
        wide, small = SIZES[pair[0]], SIZES[pair[1]]
        for vector, size in WIDTHS.items():
            count = size // wide
            for mask in ("", *MASKS):
                yield f"vpmov{kind}{pair} {by_size[max(16, count * small)]}17{mask}, {vector}2"
            for mask in ("", "{k1}"):
                yield f"vpmov{kind}{pair} [rdi+rsi*8+32]{mask}, {vector}2"
    for sign, pair in product("sz", ("bw", "bd", "bq", "wd", "wq", "dq")):
        small, wide = SIZES[pair[0]], SIZES[pair[1]]
        for vector, size in WIDTHS.items():
            part = size // wide * small
            for mask in ("", *MASKS):
                yield f"vpmov{sign}x{pair} {vector}17{mask}, {by_size[max(16, part)]}2"
                yield f"vpmov{sign}x{pair} {vector}1{mask}, [rdi+rsi*8+32]"


def integers() -> Iterator[str]:
    for stem, size in product(("add", "sub", "mins", "maxs", "minu", "maxu"), "bwdq"):
        yield from packed(f"vp{stem}{size}")
    for size in "wdq":
        yield from packed(f"vpmull{size}")
    for size in "bwdq":
        yield from packed(f"vpabs{size}", 1)
    for stem, size in product(("adds", "addus", "subs", "subus", "avg"), "bw"):
        yield from packed(f"vp{stem}{size}")
    for name, element in (("mulhw", 2), ("mulhuw", 2), ("mulhrsw", 2), ("muludq", 8), ("muldq", 8)):
        yield from packed(f"vp{name}", element=element)
    for name in ("vpacksswb", "vpackuswb", "vpmaddwd"):
        yield from packed(name, element=2)
    for name in ("vpackssdw", "vpackusdw"):
        yield from packed(name, element=4)
    yield from packed("vpsadbw", element=1, masks=False)
    for size in "dq":
        yield from packed(f"vplzcnt{size}", 1)
        for stem in ("vprolv", "vprorv"):
            yield from packed(f"{stem}{size}")
        for stem, imm in product(("vprol", "vpror"), (0, 1, 31, 33, 63)):
            yield from list(packed(f"{stem}{size}", 1, f", {imm}"))[imm % 5 :: 5]
    yield from shifts()


def shifts() -> Iterator[str]:
    for stem, size in product(("vpsll", "vpsrl", "vpsra"), "wdq"):
        for imm in (0, 1, 5, 15, 31, 33, 64, 200):
            yield from list(packed(f"{stem}{size}", 1, f", {imm}"))[imm % 7 :: 7]
        for register, mask in product(WIDTHS, ("", *MASKS)):
            yield f"{stem}{size} {register}1{mask}, {register}2, xmm5"
            yield f"{stem}{size} {register}1{mask}, {register}2, {memory(16)}"
            yield f"{stem}v{size} {register}1{mask}, {register}2, {register}5"
        yield from packed(f"{stem}v{size}")


def shuffles() -> Iterator[str]:
    for half, (pair, size) in product("lh", (("bw", 1), ("wd", 2), ("dq", 4), ("qdq", 8))):
        yield from packed(f"vpunpck{half}{pair}", element=size)
    for half, kind in product("lh", ("ps", "pd")):
        yield from packed(f"vunpck{half}{kind}")
    for imm in (0x00, 0x1B, 0x4E, 0xB1, 0xD8):
        for name, sources, element in (
            ("vshufps", 2, 4), ("vshufpd", 2, 8), ("vpshufd", 1, 4), ("vpermilps", 1, 4), ("vpermilpd", 1, 8),
            ("vpshuflw", 1, 2), ("vpshufhw", 1, 2), ("valignd", 2, 4), ("valignq", 2, 8),
        ):  # fmt: skip
            yield from list(packed(name, sources, f", {imm}", element))[imm % 5 :: 5]
        for name, element in (("vpermpd", 8), ("vpermq", 8)):
            forms = [f for f in packed(name, 1, f", {imm}", element) if "xmm" not in f]
            yield from forms[imm % 3 :: 3]
        for name in ("vshuff32x4", "vshuff64x2", "vshufi32x4", "vshufi64x2"):
            forms = [f for f in packed(name, 2, f", {imm}", 8 if "64" in name else 4) if "xmm" not in f]
            yield from forms[imm % 3 :: 3]
    for imm in (0, 3, 4, 8, 16, 21):
        yield from list(packed("vpalignr", 2, f", {imm}", 1))[imm % 4 :: 4]
        for name in ("vpslldq", "vpsrldq"):
            yield from packed(name, 1, f", {imm}", 1, masks=False)
    for name in ("vpermilps", "vpermilpd", "vpermt2ps", "vpermt2pd", "vpermi2ps", "vpermi2pd"):
        yield from packed(name)
    for stem, letter in product(("vpermt2", "vpermi2"), "wdq"):
        yield from list(packed(f"{stem}{letter}"))[:: 4 if letter == "w" else 1]
    for name in ("vpermps", "vpermd", "vpermpd", "vpermq"):
        yield from (form for form in packed(name) if "xmm" not in form)
    yield from list(packed("vpermw"))[::3]
    for name, element in (("vmovddup", 8), ("vmovsldup", 4), ("vmovshdup", 4)):
        yield from (
            f for f in packed(name, 1, "", element) if "{1to" not in f and not ("movddup" in name and "xmmword" in f)
        )
    yield f"vmovddup xmm17, {memory(8)}"


def indexed() -> Iterator[str]:
    for index, (kind, letter) in product("dq", (("ps", "d"), ("pd", "q"))):
        index_bytes, element = (4 if index == "d" else 8), SIZES[kind]
        for size in WIDTHS.values():
            count = size // max(index_bytes, element)
            by_size = {16: "xmm", 32: "ymm", 64: "zmm"}
            place = by_size[max(16, count * index_bytes)]
            data = by_size[max(16, count * element)]
            yield f"vgather{index}{kind} {data}1{{k1}}, [r8+{place}5*4-8]"
            yield f"vpgather{index}{letter} {data}17{{k3}}, [r8+{place}5*2+16]"
            yield f"vscatter{index}{kind} [r8+{place}5*4-8]{{k1}}, {data}2"
            yield f"vpscatter{index}{letter} [r8+{place}5*2+16]{{k3}}, {data}18"


def every() -> list[str]:
    """All forms, in a fixed order, without repetition."""
    groups = (floats, fused, compares, masks, moves, conversions, integers, shuffles, indexed)
    return list(dict.fromkeys(form for group in groups for form in group()))
