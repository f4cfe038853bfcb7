"""The types and constants that a parser must be told to read OpenCL C; its functions the parser knows by itself."""

from __future__ import annotations

_SCALARS = {
    "char": "char",
    "uchar": "unsigned char",
    "short": "short",
    "ushort": "unsigned short",
    "int": "int",
    "uint": "unsigned int",
    "long": "long",
    "ulong": "unsigned long",
    "float": "float",
    "double": "double",
    "half": "half",
}
_WIDTHS = (2, 3, 4, 8, 16)
_FLOATS = {
    "M_E": "2.718281828459045",
    "M_LOG2E": "1.4426950408889634",
    "M_LOG10E": "0.4342944819032518",
    "M_LN2": "0.6931471805599453",
    "M_LN10": "2.302585092994046",
    "M_PI": "3.141592653589793",
    "M_PI_2": "1.5707963267948966",
    "M_PI_4": "0.7853981633974483",
    "M_1_PI": "0.3183098861837907",
    "M_2_PI": "0.6366197723675814",
    "M_2_SQRTPI": "1.1283791670955126",
    "M_SQRT2": "1.4142135623730951",
    "M_SQRT1_2": "0.7071067811865476",
}
_CONSTANTS = {
    "CLK_LOCAL_MEM_FENCE": "0x01u",
    "CLK_GLOBAL_MEM_FENCE": "0x02u",
    "CLK_IMAGE_MEM_FENCE": "0x04u",
    "CHAR_BIT": "8",
    "CHAR_MAX": "127",
    "CHAR_MIN": "(-128)",
    "UCHAR_MAX": "255",
    "SHRT_MAX": "32767",
    "SHRT_MIN": "(-32768)",
    "USHRT_MAX": "65535",
    "INT_MAX": "2147483647",
    "INT_MIN": "(-2147483647 - 1)",
    "UINT_MAX": "4294967295u",
    "LONG_MAX": "9223372036854775807L",
    "LONG_MIN": "(-9223372036854775807L - 1)",
    "ULONG_MAX": "18446744073709551615UL",
    "FLT_MAX": "3.4028234663852886e38f",
    "FLT_MIN": "1.1754943508222875e-38f",
    "FLT_EPSILON": "1.1920928955078125e-7f",
    "MAXFLOAT": "3.4028234663852886e38f",
    "HUGE_VALF": "__builtin_huge_valf()",
    "INFINITY": "__builtin_inff()",
    "NAN": '__builtin_nanf("")',
    "DBL_MAX": "1.7976931348623157e308",
    "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.220446049250313e-16",
    "NULL": "((void *)0)",
    "ATOMIC_VAR_INIT(x)": "(x)",
    "CLK_NORMALIZED_COORDS_FALSE": "0x00u",
    "CLK_NORMALIZED_COORDS_TRUE": "0x01u",
    "CLK_ADDRESS_NONE": "0x00u",
    "CLK_ADDRESS_CLAMP_TO_EDGE": "0x02u",
    "CLK_ADDRESS_CLAMP": "0x04u",
    "CLK_ADDRESS_REPEAT": "0x06u",
    "CLK_ADDRESS_MIRRORED_REPEAT": "0x08u",
    "CLK_FILTER_NEAREST": "0x10u",
    "CLK_FILTER_LINEAR": "0x20u",
}
_FEATURES = (
    "atomic_order_acq_rel",
    "atomic_order_seq_cst",
    "atomic_scope_device",
    "atomic_scope_all_devices",
    "generic_address_space",
    "read_write_images",
    "work_group_collective_functions",
)
"""What OpenCL C 2.0 has and the parser wants to be told of, or it does not know the functions."""
_ENUMS = {
    "memory_order": ("relaxed", "acquire", "release", "acq_rel", "seq_cst"),
    "memory_scope": ("work_item", "work_group", "device", "all_svm_devices", "sub_group"),
}
"""Types of the arguments of atomic functions of OpenCL 2.0; the parser knows the values by names of its own."""


def prelude() -> str:
    """A header with the types and constants of OpenCL C for a parser that declares the functions itself."""
    lines = [f"typedef {text} {name};" for name, text in _SCALARS.items() if name != text]
    lines += ["typedef unsigned long size_t;", "typedef long ptrdiff_t;", "typedef long intptr_t;"]
    lines += ["typedef unsigned long uintptr_t;", "typedef uint cl_mem_fence_flags;"]
    # without these the parser does not know the functions that take pointers
    lines += [
        "#define __opencl_c_named_address_space_builtins 1",
        "#define cl_khr_fp16 1",
        "#if __OPENCL_C_VERSION__ >= 200",
    ]
    lines += [f"#define __opencl_c_{name} 1" for name in _FEATURES]
    for name, words in _ENUMS.items():
        own = "__ATOMIC_{}" if name == "memory_order" else "__OPENCL_MEMORY_SCOPE_{}"
        values = ", ".join(f"{name}_{word} = {own.format(word.upper())}" for word in words)
        lines.append(f"typedef enum {name} {{ {values} }} {name};")
    lines.append("#endif")
    lines += [f"#pragma OPENCL EXTENSION {name} : enable" for name in ("cl_khr_fp64", "cl_khr_fp16")]
    for name in _SCALARS:
        lines += [f"typedef {name} {name}{n} __attribute__((ext_vector_type({n})));" for n in _WIDTHS]
        lines += [f"#define as_{name}{n}(x) __builtin_astype((x), {name}{n})" for n in ("", *_WIDTHS)]
    lines += ["#if __OPENCL_C_VERSION__ >= 120", "int printf(__constant const char *restrict, ...);", "#endif"]
    for name, value in _FLOATS.items():
        lines += [f"#define {name} {value}", f"#define {name}_F {value}f"]
    lines += [f"#define {name} {value}" for name, value in _CONSTANTS.items()]
    return "\n".join(lines) + "\n"
