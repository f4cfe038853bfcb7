"""OpenCL C to :class:`KernelProgram`, with libclang."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path

from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.rewrite.program import SourceProgram
from layout_advise.apply.rewrite.syntax import CType, Syntax, TranslationUnit
from layout_advise.errors import SourceError
from layout_advise.opencl.source.kernels import (
    BufferMember,
    BufferRecord,
    Kernel,
    KernelParameter,
    KernelProgram,
    space_of,
)
from layout_advise.opencl.source.prelude import prelude
from layout_advise.opencl.source.preprocess import PlainSource, plain

_STANDARD = "-cl-std=CL2.0"
_KERNEL = re.compile(r"\b(?:__)?kernel\b")
_FLAGS = ("-x", "cl", "-cl-no-stdinc", "-Xclang", "-fdeclare-opencl-builtins", "-target", "spir64")
_OPAQUE = ("image", "sampler_t", "pipe", "queue_t", "event_t", "reserve_id_t")


def read_program(source: str, options: str = "", name: str = "kernel.cl") -> KernelProgram:
    """The program that a device would build of ``source`` with ``options``. Raises SourceError where it does not parse."""
    text = plain(source, options, name)
    unit = _unit(text, name)
    program = SourceProgram([unit])
    records: dict[str, BufferRecord] = {}
    kernels = [_kernel(node, text) for node in unit.declarations if _is_kernel(program, node)]
    wanted = {parameter.record for kernel in kernels for parameter in kernel.parameters if parameter.record}
    for top in unit.declarations:
        for node in top.walk():
            if node.kind == "STRUCT_DECL" and node.defines and node.declares in wanted and node.declares not in records:
                records[node.declares] = _record(node)
    return KernelProgram(text, program, tuple(kernels), tuple(records.values()))


def _unit(source: PlainSource, name: str) -> TranslationUnit:
    standard = [option for option in source.options if option.startswith("-cl-std=")] or [_STANDARD]
    with tempfile.TemporaryDirectory(prefix="layout-advise-") as folder:
        place, header = Path(folder, "kernel.cl"), Path(folder, "prelude.h")
        place.write_text(source.text, encoding="latin-1", errors="replace")
        header.write_text(prelude())
        try:
            unit = parse(place, [*_FLAGS, *standard, "-include", str(header)], Path(folder))
        except SourceError as error:
            raise SourceError(f"{name} does not parse", _located(error.why, source, name), error.hint) from None
    mine = [node for node in unit.declarations if node.file.name == place.name]
    declared = {node.declares for node in mine if node.kind == "FUNCTION_DECL"}
    own = tuple(_with_language_functions(node, declared) for node in mine)
    return TranslationUnit(unit.path, own, {path: text for path, text in unit.texts.items() if path.name == place.name})


def _with_language_functions(node: Syntax, declared: set[str]) -> Syntax:
    """Functions that the source does not declare are the language's own; libclang has these begin at their first use."""
    children = tuple(_with_language_functions(child, declared) for child in node.children)
    called = node.kind == "CALL_EXPR" and node.refers not in declared
    return replace(node, children=children, foreign=node.foreign or called)


def _located(why: str, source: PlainSource, name: str) -> str:
    found = re.match(r".*kernel\.cl:(\d+): (.*)", why, re.DOTALL)
    return f"{name}:{source.line(int(found[1]))}: {found[2]}" if found else why


def _is_kernel(program: SourceProgram, node: Syntax) -> bool:
    if node.kind != "FUNCTION_DECL" or not node.defines:
        return False
    text = program.texts[node.file]
    start = max(text.rfind(";", 0, node.name_at), text.rfind("}", 0, node.name_at))
    return _KERNEL.search(text, start + 1, node.name_at) is not None


def _kernel(node: Syntax, source: PlainSource) -> Kernel:
    parameters = tuple(_parameter(child) for child in node.children if child.kind == "PARM_DECL")
    return Kernel(node.name, parameters, node, source.line(node.line))


def _parameter(node: Syntax) -> KernelParameter:
    shape = node.shape
    text = " ".join(word for word in shape.text.split() if word != "__private").removesuffix("__private")
    if any(word in shape.text for word in _OPAQUE):
        return KernelParameter(node.name, "other", "", 0, text)
    if shape.form != "pointer" or shape.of is None:
        return KernelParameter(node.name, "value", "", shape.size, text)
    space = space_of(shape.of)
    if space == "local":
        return KernelParameter(node.name, "local", "", shape.of.size, text)
    return KernelParameter(node.name, "buffer", shape.of.record if shape.of.form == "record" else "", shape.of.size, text)


def _record(node: Syntax) -> BufferRecord:
    named = [child for child in node.children if child.kind == "FIELD_DECL" and child.name and not child.bits]
    rest = [child for child in node.children if child.kind in ("FIELD_DECL", "UNION_DECL") and child not in named]
    members = tuple(_member(child) for child in named)
    empty = [member.name for member in members if member.bytes == 0]
    obstacle = "it has a union or bit fields" if rest else f"its member {empty[0]} has no size" if empty else ""
    return BufferRecord(node.shape.text, node.declares, node.shape.size, members, node, obstacle)


def _member(node: Syntax) -> BufferMember:
    return BufferMember(node.name, _spelled(node.shape), node.offset, node.shape.size, node.shape.align)


def _spelled(shape: CType) -> str:
    """The type as OpenCL C writes it: ``float4`` for what libclang calls by its attribute."""
    scalar = {"unsigned char": "uchar", "unsigned short": "ushort", "unsigned int": "uint", "unsigned long": "ulong"}
    atomic = re.sub(r"_Atomic\(([^()]*)\)", lambda found: "atomic_" + scalar.get(found[1], found[1]), shape.text)
    found = re.fullmatch(r"(.*?)\s*__attribute__\(\(ext_vector_type\((\d+)\)\)\)", atomic)
    return atomic if found is None else scalar.get(found[1], found[1]) + found[2]
