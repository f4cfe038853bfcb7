"""Instruction forms, in Intel syntax, that the semantics table is checked on against the processor.

rdi and r8 point into the shared memory (aligned to 64), rsi and r9 are small even indices; all else is random.
"""

from __future__ import annotations

from itertools import product

CONDITIONS = ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"]
_A = {1: ("al", "cl"), 2: ("ax", "cx"), 4: ("eax", "ecx"), 8: ("rax", "rcx")}
_NAMES = {1: "byte", 2: "word", 4: "dword", 8: "qword", 16: "xmmword", 32: "ymmword"}


def memory(size: int) -> str:
    """A memory operand of ``size`` bytes, aligned to 16."""
    return f"{_NAMES[size]} ptr [rdi+rsi*8+32]"


def integer() -> list[str]:
    forms: list[str] = []
    for name in ("add", "sub", "and", "or", "xor", "cmp", "test", "adc", "sbb", "mov"):
        for size, (a, b) in _A.items():
            forms += [f"{name} {a}, {b}", f"{name} {memory(size)}, {a}", f"{name} {a}, 5", f"{name} {memory(size)}, -3"]
            forms += [] if name == "test" else [f"{name} {a}, {memory(size)}"]
    forms += [f"{name} {r}, {r}" for name in ("xor", "sub", "sbb", "and", "test", "cmp") for r in ("eax", "rdx", "bl")]
    for name in ("inc", "dec", "neg", "not"):
        forms += [f"{name} {a}" for a, _ in _A.values()] + [f"{name} {memory(size)}" for size in _A]
    forms += [f"{name} {r}" for name in ("inc", "add dh,", "mov ah,", "xor ch,") for r in ("bh", "al") if name != "inc"]
    forms += ["inc ah", "movzx eax, ch", "movsx edx, ah", "mov ah, bl", "xchg rax, rdx", "xchg ecx, ebx", "xchg al, bl"]
    for size in (2, 4, 8):
        a, b = _A[size]
        forms += [f"imul {a}, {b}", f"imul {a}, {memory(size)}", f"imul {a}, {b}, 77", f"imul {a}, {memory(size)}, -1234"]
        forms += [f"cmov{cc} {a}, {b}" for cc in CONDITIONS] + [f"cmovl {a}, {memory(size)}", f"movbe {a}, {memory(size)}"]
        forms += [f"movzx {a}, {memory(1)}", f"movsx {a}, dl", f"bt {a}, {b}", f"bt {a}, 13", f"bts {a}, {b}", f"btr {a}, 3"]
        forms += [f"btc {a}, {b}", f"bt {memory(size)}, 5", f"popcnt {a}, {b}", f"lzcnt {a}, {b}", f"tzcnt {a}, {b}"]
        forms += [f"popcnt {a}, {memory(size)}", f"tzcnt {a}, {memory(size)}"]
    for size in _A:
        a, b = _A[size]
        forms += [f"mul {b}", f"imul {b}", f"mul {memory(size)}", f"imul {memory(size)}"]
        for name, count in product(("shl", "shr", "sar", "rol", "ror"), ("1", "0", "3", "7", "31", "cl")):
            forms += [f"{name} {'dl' if size == 1 else _A[size][0].replace('a', 'd')}, {count}"]
        forms += [f"{name} {memory(size)}, {n}" for name in ("shl", "sar", "shr") for n in (1, 5)]
    forms += [f"{name} rdx, {n}" for name in ("shl", "shr", "sar", "rol", "ror") for n in (32, 33, 63)]
    forms += [f"set{cc} {'dl' if i % 2 else memory(1)}" for i, cc in enumerate(CONDITIONS)]
    forms += [
        "lea rax, [rdi+rsi*4+12]",
        "lea eax, [rbx+rcx*8-7]",
        "lea rdx, [rcx*4]",
        "lea cx, [rax+rbx]",
        "lea r10d, [rax+1]",
    ]
    forms += [
        "movzx eax, cx",
        "movzx rax, dl",
        "movsx rax, cx",
        "movsxd rax, ecx",
        f"movsxd rax, {memory(4)}",
        "mov r8d, eax",
    ]
    forms += [
        "movabs rax, 0x123456789abcdef0",
        "mov eax, 0x80000000",
        "mov rax, -5",
        "cbw",
        "cwde",
        "cdqe",
        "cwd",
        "cdq",
        "cqo",
    ]
    forms += ["bswap eax", "bswap r10", "nop", "endbr64", "push rax", "push -7", "pop rcx", "leave", "mov eax, [rip+shared]"]
    forms += [f"{name} {regs}" for name in ("shlx", "shrx", "sarx") for regs in ("eax, ebx, ecx", f"rax, {memory(8)}, rcx")]
    forms += ["rorx eax, ebx, 7", "rorx rax, rbx, 60", "andn eax, ebx, ecx", f"andn rax, rbx, {memory(8)}"]
    forms += [f"{name} {regs}" for name in ("blsr", "blsi", "blsmsk") for regs in ("eax, ebx", f"rax, {memory(8)}")]
    forms += [f"{name} {regs}" for name in ("bzhi", "bextr") for regs in ("eax, ebx, ecx", f"rax, {memory(8)}, rcx")]
    forms += [
        "mulx eax, ebx, ecx",
        f"mulx r10, rbx, {memory(8)}",
        "mulx rax, rax, rbx",
        "bsf eax, ebx",
        "bsr rcx, rbx",
        "bsr eax, ebx",
    ]
    forms += [f"{name} {regs}" for name in ("shld", "shrd") for regs in ("eax, ebx, 9", "rax, rbx, 40")]
    forms += ["clc", "stc", "cmc"]
    return forms + locked()


def locked() -> list[str]:
    forms: list[str] = []
    for size, (a, b) in _A.items():
        forms += [f"lock {name} {memory(size)}, {x}" for name in ("add", "sub", "and", "or", "xor") for x in (a, b, "-3")]
        forms += [f"lock inc {memory(size)}", f"lock dec {memory(size)}", f"lock xadd {memory(size)}, {b}"]
        forms += [f"xchg {memory(size)}, {b}", f"xchg {b}, {memory(size)}", f"lock cmpxchg {memory(size)}, {b}"]
    return forms


DIVISIONS = [f"{name} {b}" for name in ("div", "idiv") for b in ("cl", "cx", "ecx", "rcx")]
"""Run on dividends that do not trap."""


def pairs(names: list[str], forms: tuple[str, ...], scalar: int | None = None) -> list[str]:
    """Legacy and VEX forms, register and memory; ``scalar`` is the bytes of a scalar memory operand."""
    found = []
    for name in names:
        size = memory(scalar or 16)
        found += [f"{name} xmm1, xmm2", f"{name} xmm1, {size}"]
        if "3" in forms:
            found += [f"v{name} xmm1, xmm2, xmm3", f"v{name} xmm1, xmm2, {size}"]
        if "2" in forms:
            found += [f"v{name} xmm1, xmm2", f"v{name} xmm1, {size}"]
        if "y3" in forms:
            found += [f"v{name} ymm1, ymm2, ymm3", f"v{name} ymm1, ymm2, {memory(32)}"]
        if "y2" in forms:
            found += [f"v{name} ymm1, ymm2", f"v{name} ymm1, {memory(32)}"]
    return found


def floats() -> list[str]:
    forms: list[str] = []
    for stem in ("add", "sub", "mul", "div", "min", "max"):
        forms += pairs([f"{stem}ps", f"{stem}pd"], ("3", "y3"))
        forms += pairs([f"{stem}ss"], ("3",), 4) + pairs([f"{stem}sd"], ("3",), 8)
    forms += pairs(["sqrtps", "sqrtpd"], ("2", "y2")) + pairs(["sqrtss"], ("3",), 4) + pairs(["sqrtsd"], ("3",), 8)
    forms += pairs(["addsubps", "addsubpd", "haddps", "haddpd", "hsubps", "hsubpd"], ("3", "y3"))
    forms += pairs("andps andpd andnps andnpd orps orpd xorps xorpd pand pandn por pxor".split(), ("3", "y3"))  # noqa: SIM905
    forms += ["xorps xmm1, xmm1", "vxorps xmm1, xmm1, xmm1", "pcmpeqd xmm1, xmm1", "vxorpd ymm4, ymm5, ymm5"]
    for name, n in product(("fmadd", "fmsub", "fnmadd", "fnmsub"), ("132", "213", "231")):
        forms += [f"v{name}{n}{kind} {r}1, {r}2, {r}3" for kind in ("ps", "pd") for r in ("xmm", "ymm")]
        forms += [f"v{name}{n}ps xmm1, xmm2, {memory(16)}", f"v{name}{n}pd ymm1, ymm2, {memory(32)}"]
        forms += [f"v{name}{n}ss xmm1, xmm2, xmm3", f"v{name}{n}sd xmm1, xmm2, {memory(8)}"]
    forms += [f"v{name}{n}{kind} ymm1, ymm2, ymm3" for name in ("fmaddsub", "fmsubadd") for n in ("132", "213", "231")
              for kind in ("ps", "pd")]  # fmt: skip
    for imm in range(5):
        forms += [f"roundps xmm1, xmm2, {imm}", f"vroundpd ymm1, ymm2, {imm}", f"roundsd xmm1, xmm2, {imm}"]
        forms += [f"vroundss xmm1, xmm2, xmm3, {imm}", f"roundss xmm1, {memory(4)}, {imm}"]
    for kind, imm in product(("ps", "pd", "ss", "sd"), range(8)):
        forms += [f"cmp{kind} xmm1, xmm2, {imm}"]
    for kind, imm in product(("ps", "pd", "ss", "sd"), range(32)):
        register = "ymm" if kind[0] == "p" and imm % 2 else "xmm"
        forms += [f"vcmp{kind} {register}1, {register}2, {register}3, {imm}" if register == "ymm" else
                  f"vcmp{kind} xmm1, xmm2, xmm3, {imm}"]  # fmt: skip
    for name in ("comiss", "ucomiss", "comisd", "ucomisd"):
        size = 4 if name.endswith("ss") else 8
        forms += [f"{p}{name} xmm1, {b}" for p in ("", "v") for b in ("xmm2", memory(size))]
    for name in ("movmskps", "movmskpd", "pmovmskb"):
        forms += [f"{name} eax, xmm2", f"v{name} eax, xmm2", f"v{name} ecx, ymm2"]
    forms += [
        "ptest xmm1, xmm2",
        "vptest ymm1, ymm2",
        "vtestps xmm1, xmm2",
        "vtestpd ymm1, ymm2",
        f"vptest ymm1, {memory(32)}",
    ]
    forms += ["dppd xmm1, xmm2, 0x31", "dpps xmm1, xmm2, 0xf3", "vdpps ymm1, ymm2, ymm3, 0x75"]
    return forms


def conversions() -> list[str]:
    forms: list[str] = []
    for target in ("ss", "sd"):
        for source in ("ecx", "rcx", memory(4), memory(8)):
            forms += [f"cvtsi2{target} xmm1, {source}", f"vcvtsi2{target} xmm1, xmm2, {source}"]
    for name in ("cvttss2si", "cvtss2si", "cvttsd2si", "cvtsd2si"):
        size = 4 if "ss2" in name else 8
        forms += [f"{p}{name} {r}, {s}" for p in ("", "v") for r in ("eax", "rax") for s in ("xmm2", memory(size))]
    for name, size in (("cvtss2sd", 4), ("cvtsd2ss", 8)):
        forms += [
            f"{name} xmm1, xmm2",
            f"{name} xmm1, {memory(size)}",
            f"v{name} xmm1, xmm2, xmm3",
            f"v{name} xmm1, xmm2, {memory(size)}",
        ]
    for name in ("cvtps2pd", "cvtdq2pd"):
        forms += [
            f"{name} xmm1, xmm2",
            f"{name} xmm1, {memory(8)}",
            f"v{name} ymm1, xmm2",
            f"v{name} ymm1, {memory(16)}",
            f"v{name} xmm1, xmm2",
        ]
    for name in ("cvtpd2ps", "cvttpd2dq", "cvtpd2dq"):
        forms += [
            f"{name} xmm1, xmm2",
            f"{name} xmm1, {memory(16)}",
            f"v{name} xmm1, ymm2",
            f"v{name} xmm1, {memory(32)}",
            f"v{name} xmm1, xmm2",
        ]
        forms += [f"v{name} xmm1, {memory(16)}"]
    return forms + pairs(["cvtdq2ps", "cvttps2dq", "cvtps2dq"], ("2", "y2"))


def moves() -> list[str]:
    forms: list[str] = []
    for name in ["movaps", "movups", "movapd", "movupd", "movdqa", "movdqu"]:
        forms += [f"{name} xmm1, xmm2", f"{name} xmm1, {memory(16)}", f"{name} {memory(16)}, xmm1", f"v{name} xmm1, xmm2"]
        aligned = name in ("movaps", "movapd", "movdqa")
        wide = "ymmword ptr [rdi+64]" if aligned else memory(32)
        forms += [f"v{name} ymm1, ymm2", f"v{name} ymm1, {wide}", f"v{name} {wide}, ymm1", f"v{name} xmm1, {memory(16)}"]
    forms += [
        f"lddqu xmm1, {memory(16)}",
        f"movntps {memory(16)}, xmm1",
        f"movntdq {memory(16)}, xmm2",
        f"movnti {memory(8)}, rax",
    ]
    for name, size in (("movss", 4), ("movsd", 8)):
        forms += [f"{name} xmm1, xmm2", f"v{name} xmm1, xmm2, xmm3"]
        forms += [f"{p}{name} {ops}" for p in ("", "v") for ops in (f"xmm1, {memory(size)}", f"{memory(size)}, xmm1")]
    for p in ("", "v"):
        forms += [
            f"{p}movq xmm1, xmm2",
            f"{p}movq xmm1, rax",
            f"{p}movq rcx, xmm1",
            f"{p}movq xmm1, {memory(8)}",
            f"{p}movq {memory(8)}, xmm1",
        ]
        forms += [f"{p}movd xmm1, eax", f"{p}movd ecx, xmm1", f"{p}movd xmm1, {memory(4)}", f"{p}movd {memory(4)}, xmm1"]
        forms += [f"{p}{name} {memory(8)}, xmm1" for name in ("movlps", "movlpd", "movhps", "movhpd")]
    for name in ("movlps", "movlpd", "movhps", "movhpd"):
        forms += [f"{name} xmm1, {memory(8)}", f"v{name} xmm1, xmm2, {memory(8)}"]
    forms += ["movhlps xmm1, xmm2", "movlhps xmm1, xmm2", "vmovhlps xmm1, xmm2, xmm3", "vmovlhps xmm1, xmm2, xmm3"]
    forms += [*pairs(["movsldup", "movshdup"], ("2", "y2"))]
    forms += ["vmovddup ymm1, ymm2", f"vmovddup ymm1, {memory(32)}", "movddup xmm1, xmm2"]
    forms += [
        f"movddup xmm1, {memory(8)}",
        f"vbroadcastss ymm1, {memory(4)}",
        f"vbroadcastsd ymm1, {memory(8)}",
        "vbroadcastss xmm1, xmm2",
    ]
    forms += ["vbroadcastsd ymm1, xmm2", f"vbroadcastf128 ymm1, {memory(16)}", f"vbroadcasti128 ymm1, {memory(16)}"]
    for letter, size in (("b", 1), ("w", 2), ("d", 4), ("q", 8)):
        forms += [f"vpbroadcast{letter} ymm1, xmm2", f"vpbroadcast{letter} xmm1, {memory(size)}"]
        register = "rcx" if size == 8 else "ecx"
        for imm in (0, 1):
            forms += [f"pinsr{letter} xmm1, {register}, {imm}", f"vpinsr{letter} xmm1, xmm2, {memory(size)}, {imm}"]
            forms += [f"pextr{letter} {register}, xmm2, {imm}", f"vpextr{letter} {memory(size)}, xmm2, {imm}"]
    forms += [
        "pinsrw xmm1, ecx, 6",
        "pinsrb xmm1, ecx, 13",
        "pextrb eax, xmm1, 11",
        "pextrw eax, xmm1, 5",
        "pinsrd xmm1, ecx, 3",
    ]
    for kind, imm in product(("f128", "i128"), (0, 1)):
        forms += [f"vinsert{kind} ymm1, ymm2, xmm3, {imm}", f"vinsert{kind} ymm1, ymm2, {memory(16)}, {imm}"]
        forms += [f"vextract{kind} xmm1, ymm2, {imm}", f"vextract{kind} {memory(16)}, ymm2, {imm}"]
    forms += [f"insertps xmm1, xmm2, {imm}" for imm in (0x10, 0x4E, 0x9A, 0xF0)] + [
        f"vinsertps xmm1, xmm2, {memory(4)}, 0x68"
    ]
    forms += [f"extractps eax, xmm2, {imm}" for imm in (0, 3)] + [f"vextractps {memory(4)}, xmm2, 2"]
    for name in ("vmaskmovps", "vmaskmovpd", "vpmaskmovd", "vpmaskmovq"):
        for r, size in (("xmm", 16), ("ymm", 32)):
            forms += [f"{name} {r}1, {r}2, {memory(size)}", f"{name} {memory(size)}, {r}2, {r}1"]
    return [*forms, "vzeroupper", "vzeroall", *blends()]


def blends() -> list[str]:
    forms = [f"{name} xmm1, xmm2, xmm0" for name in ("blendvps", "blendvpd", "pblendvb")]
    forms += [f"v{name} ymm1, ymm2, ymm3, ymm4" for name in ("blendvps", "blendvpd", "pblendvb")]
    forms += [f"vblendvpd xmm1, xmm2, {memory(16)}, xmm4", f"blendvpd xmm1, {memory(16)}, xmm0"]
    for imm in (0, 5, 0xAA, 0xFF):
        forms += [
            f"blendps xmm1, xmm2, {imm & 15}",
            f"vblendps ymm1, ymm2, ymm3, {imm}",
            f"vblendpd ymm1, ymm2, ymm3, {imm & 15}",
        ]
        forms += [
            f"pblendw xmm1, xmm2, {imm}",
            f"vpblendw ymm1, ymm2, ymm3, {imm}",
            f"vpblendd ymm1, ymm2, {memory(32)}, {imm}",
        ]
    return forms


def shuffles() -> list[str]:
    names = "unpcklps unpckhps unpcklpd unpckhpd punpcklbw punpckhbw punpcklwd punpckhwd punpckldq punpckhdq "
    names += "punpcklqdq punpckhqdq"
    forms = pairs(names.split(), ("3", "y3"))
    for imm in (0x00, 0x1B, 0x4E, 0xB1, 0xD8, 0xFF):
        forms += [f"shufps xmm1, xmm2, {imm}", f"vshufps ymm1, ymm2, ymm3, {imm}", f"pshufd xmm1, xmm2, {imm}"]
        forms += [f"vpshufd ymm1, {memory(32)}, {imm}", f"vpermilps ymm1, ymm2, {imm}", f"vpermpd ymm1, ymm2, {imm}"]
        forms += [f"vpermq ymm1, {memory(32)}, {imm}", f"pshuflw xmm1, xmm2, {imm}", f"vpshufhw ymm1, ymm2, {imm}"]
    for imm in range(4):
        forms += [f"shufpd xmm1, xmm2, {imm}", f"vshufpd ymm1, ymm2, ymm3, {imm * 5}", f"vpermilpd ymm1, ymm2, {imm * 3}"]
    for imm in (0x00, 0x20, 0x31, 0x13, 0x08, 0x81, 0x30):
        forms += [f"vperm2f128 ymm1, ymm2, ymm3, {imm}", f"vperm2i128 ymm1, ymm2, {memory(32)}, {imm}"]
    forms += ["vpermilps ymm1, ymm2, ymm3", "vpermilpd ymm1, ymm2, ymm3", "vpermilpd xmm1, xmm2, xmm3"]
    forms += ["vpermps ymm1, ymm2, ymm3", f"vpermd ymm1, ymm2, {memory(32)}"]
    forms += [
        "pshufb xmm1, xmm2",
        "vpshufb xmm1, xmm2, xmm3",
        "vpshufb ymm1, ymm2, ymm3",
        f"vpshufb ymm1, ymm2, {memory(32)}",
    ]
    for imm in (0, 3, 4, 8, 10, 16, 21, 32, 40):
        forms += [f"palignr xmm1, xmm2, {imm}", f"vpalignr ymm1, ymm2, ymm3, {imm}"]
        forms += [f"pslldq xmm1, {imm}", f"vpsrldq ymm1, ymm2, {imm}"]
    return forms


def packed_integers() -> list[str]:
    names = [f"p{n}{s}" for n, s in product(("add", "sub"), "bwdq")]
    names += [f"p{n}{s}{t}" for n, s, t in product(("min", "max"), "su", "bwd")]
    names += [f"pcmp{n}{s}" for n, s in product(("eq", "gt"), "bwdq")]
    names += (
        "pmullw pmulld pmulhw pmulhuw pmulhrsw pmuludq pmuldq pmaddwd paddsb paddsw paddusb paddusw psubsb psubsw".split()  # noqa: SIM905
    )
    names += (
        "psubusb psubusw packsswb packssdw packuswb packusdw pavgb pavgw psignb psignw psignd phaddw phaddd phsubw".split()  # noqa: SIM905
    )
    names += ["phsubd", "psadbw"]
    forms = pairs(names, ("3", "y3")) + pairs(["pabsb", "pabsw", "pabsd"], ("2", "y2"))
    for name in ["psllw", "pslld", "psllq", "psrlw", "psrld", "psrlq", "psraw", "psrad"]:
        forms += [f"{name} xmm1, {n}" for n in (0, 1, 15, 33, 64)] + [f"v{name} ymm1, ymm2, {n}" for n in (5, 31)]
        forms += [f"{name} xmm1, xmm2", f"v{name} ymm1, ymm2, xmm5"]
    forms += [f"{name} ymm1, ymm2, ymm5" for name in ("vpsllvd", "vpsllvq", "vpsrlvd", "vpsrlvq", "vpsravd")]
    for sign, kind in product("sz", ("bw", "bd", "bq", "wd", "wq", "dq")):
        factor = {"bw": 2, "bd": 4, "bq": 8, "wd": 2, "wq": 4, "dq": 2}[kind]
        name = f"pmov{sign}x{kind}"
        forms += [
            f"{name} xmm1, xmm2",
            f"{name} xmm1, {memory(16 // factor)}",
            f"v{name} ymm1, xmm2",
            f"v{name} ymm1, {memory(32 // factor)}",
        ]
    return forms


def gathers() -> list[str]:
    """The index register (5) is overwritten with small values by the test."""
    forms = []
    for name, index, dest in (
        ("gatherdps", "ymm", "ymm"), ("gatherdps", "xmm", "xmm"), ("gatherdpd", "xmm", "ymm"), ("gatherdpd", "xmm", "xmm"),
        ("gatherqps", "ymm", "xmm"), ("gatherqps", "xmm", "xmm"), ("gatherqpd", "ymm", "ymm"), ("gatherqpd", "xmm", "xmm"),
    ):  # fmt: skip
        forms += [f"v{name} {dest}1, [r8+{index}5*4-8], {dest}3"]
        forms += [f"vp{name.replace('ps', 'd').replace('pd', 'q')} {dest}1, [r8+{index}5*2], {dest}3"]
    return forms


STRINGS = [f"{name}{suffix}" for name in ("movs", "stos", "lods") for suffix in "bwdq"]
"""They need rsi as a pointer."""
STACK = [f"push {memory(8)}", "pop r8", "push rsp", "pop rsp"]


def every() -> list[str]:
    """All forms, in a fixed order, without repetition."""
    found = [
        *integer(),
        *DIVISIONS,
        *STACK,
        *STRINGS,
        *floats(),
        *conversions(),
        *moves(),
        *shuffles(),
        *packed_integers(),
        *gathers(),
    ]
    return list(dict.fromkeys(found))
