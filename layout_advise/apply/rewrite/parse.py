"""Source to :class:`TranslationUnit` with libclang: the one module that calls it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from layout_advise.apply.rewrite.syntax import CType, Syntax, TranslationUnit
from layout_advise.errors import MachineError, SourceError

BINARY = [
    "",
    ".*",
    "->*",
    "*",
    "/",
    "%",
    "+",
    "-",
    "<<",
    ">>",
    "<=>",
    "<",
    ">",
    "<=",
    ">=",
    "==",
    "!=",
    "&",
    "^",
    "|",
    "&&",
    "||",
    "=",
    "*=",
    "/=",
    "%=",
    "+=",
    "-=",
    "<<=",
    ">>=",
    "&=",
    "^=",
    "|=",
    ",",
]
UNARY = ("", "post++", "post--", "++", "--", "&", "*", "+", "-", "~", "!")
OPERATORS = {"BINARY_OPERATOR": BINARY, "COMPOUND_ASSIGNMENT_OPERATOR": BINARY, "UNARY_OPERATOR": UNARY}
SIZED_TYPES = {"RECORD", "POINTER", "CONSTANTARRAY", "ENUM", "BOOL", "CHAR_U", "UCHAR", "CHAR_S", "SCHAR", "WCHAR", "SHORT",
               "USHORT", "INT", "UINT", "LONG", "ULONG", "LONGLONG", "ULONGLONG", "INT128", "UINT128", "FLOAT", "DOUBLE",
               "LONGDOUBLE", "FLOAT128", "HALF", "COMPLEX", "VECTOR", "EXTVECTOR", "CHAR16", "CHAR32",
               "LVALUEREFERENCE", "RVALUEREFERENCE", "ATOMIC"}  # fmt: skip
"""Kinds of types that have a size; of others libclang must not be asked."""
LENIENT = ("-Wno-reserved-user-defined-literal", "-Wno-c++11-narrowing")
"""What gcc only warns of."""
MEMBER_FUNCTIONS = {"CXX_METHOD", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION"}
NAMING = {"DECL_REF_EXPR", "MEMBER_REF_EXPR", "TYPE_REF", "CALL_EXPR", "MEMBER_REF"}


@cache
def _cindex() -> Any:
    try:
        from clang import cindex
    except ImportError as error:
        raise MachineError(
            "cannot read C or C++", "the Python package libclang is missing", "pip install 'layout-advise[apply]'"
        ) from error
    library = cindex.conf.lib
    for name in ("clang_getCursorBinaryOperatorKind", "clang_getCursorUnaryOperatorKind"):
        function = getattr(library, name)
        function.argtypes, function.restype = [cindex.Cursor], ctypes.c_int
    return cindex


@cache
def _builtin_headers() -> tuple[str, ...]:
    """Flags for the compiler's own headers, which the package does not have."""
    for compiler, question in (("clang", "-print-resource-dir"), ("gcc", "-print-file-name=include")):
        if (found := shutil.which(compiler)) is not None:
            answer = subprocess.run([found, question], capture_output=True, text=True, check=False).stdout.strip()
            if answer:
                return ("-resource-dir", answer) if compiler == "clang" else ("-isystem", answer)
    return ()


def parse(path: Path, flags: Sequence[str], folder: Path) -> TranslationUnit:
    """The translation unit of ``path`` as the compiler that runs in ``folder`` with ``flags`` sees it. Raises SourceError
    where it does not parse."""
    cindex = _cindex()
    own = _builtin_headers()
    arguments = [*own, *flags, *LENIENT, "-ferror-limit=0", "-working-directory", str(folder)]
    try:
        unit = cindex.Index.create().parse(
            str(path), args=arguments, options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        )
    except cindex.TranslationUnitLoadError as error:
        raise SourceError(f"cannot read {path}", str(error), "give the flags that it is compiled with") from error
    for diagnostic in unit.diagnostics:
        # the compiler's own headers are of another version than libclang, which may not know what intrinsics are made of
        inside = own and diagnostic.location.file is not None and diagnostic.location.file.name.startswith(own[1])
        if diagnostic.severity >= cindex.Diagnostic.Error and not inside:
            where = f"{diagnostic.location.file}:{diagnostic.location.line}"
            raise SourceError(
                f"{path} does not parse", f"{where}: {diagnostic.spelling}", "give the flags that it is compiled with"
            )
    return _Reader(cindex, unit, path, folder).read()


class _Reader:
    """Walks one unit's cursors; knows which places macros made."""

    def __init__(self, cindex: Any, unit: Any, path: Path, folder: Path) -> None:
        self.cindex, self.unit, self.path, self.folder = cindex, unit, path, folder
        self.library = cindex.conf.lib
        self.files: dict[str, Path] = {}
        self.by_handle: dict[int, Path] = {}
        # by name anew: these have no declared types, which the bindings' own ones have
        self._spelling, self._expansion = (self.library[f"clang_get{what}Location"] for what in ("Spelling", "Expansion"))
        self._handle, self._line, self._offset = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint()
        self.shapes: dict[str, CType] = {}
        self.typedefs: dict[str, Any] = {}
        self.incomplete: set[str] = set()
        self.expansions: dict[tuple[Path, int], int] = {}

    def read(self) -> TranslationUnit:
        tops = [cursor for cursor in self.unit.cursor.get_children() if cursor.location.file is not None]
        mine = [cursor for cursor in tops if not self._is_foreign(cursor)]
        for cursor in mine:
            if cursor.kind.name == "MACRO_INSTANTIATION":
                extent = cursor.extent
                self.expansions[self._file(extent.start.file.name), extent.start.offset] = extent.end.offset
        self.typedefs = {cursor.spelling: cursor for cursor in mine if cursor.kind.name == "TYPEDEF_DECL"}
        declarations = tuple(
            self._node(cursor)
            for cursor in mine
            if cursor.kind.name not in ("MACRO_INSTANTIATION", "MACRO_DEFINITION", "INCLUSION_DIRECTIVE")
        )
        texts = {file: file.read_bytes().decode("latin-1") for file in {node.file for node in declarations}}
        return TranslationUnit(self.path, declarations, texts, self.expansions, frozenset(self.incomplete))

    def _is_foreign(self, cursor: Any) -> bool:
        if cursor.location.file is None:  # the compiler's own
            return True
        return bool(self.library.clang_Location_isInSystemHeader(cursor.location))

    def _file(self, name: str) -> Path:
        if name not in self.files:
            self.files[name] = (self.folder / name).resolve()
        return self.files[name]

    def _place(self, location: Any, spelt: bool) -> tuple[int, int, int]:
        """A file's handle, offset and line: of a place in a macro that of its use or, ``spelt``, that of an argument.
        The bindings' own objects for these take most of the time."""
        ask = self._spelling if spelt else self._expansion
        ask(location, ctypes.byref(self._handle), ctypes.byref(self._line), None, ctypes.byref(self._offset))
        return self._handle.value or 0, self._offset.value, self._line.value

    def _path(self, handle: int, location: Any) -> Path:
        """The file of a handle."""
        if handle not in self.by_handle:
            self.by_handle[handle] = self._file(location.file.name) if location.file is not None else self.path
        return self.by_handle[handle]

    def _extent(self, cursor: Any) -> tuple[Path, int, int, int, bool]:
        """File, start, end and line, and whether a macro's body made a part of the node."""
        extent = cursor.extent
        first, last = extent.start, extent.end
        handle, used, line = self._place(first, False)
        last_handle, last_used, _ = self._place(last, False)
        file = self._path(handle, first)
        if last_handle != handle:
            return file, used, used, line, True
        whole = self.expansions.get((file, used))
        last_whole = self.expansions.get((file, last_used))
        if whole is None:
            argument = last_whole is not None and self._place(last, True)[1] != last_used
            return file, used, last_whole if argument and last_whole else last_used, line, False
        start, end = self._place(first, True)[1], self._place(last, True)[1]
        if used < start < whole:  # an argument, which may be a macro again
            end = max(end, self.expansions.get((file, start), 0), self.expansions.get((file, end), 0))
            return file, start, end, line, end >= whole or end <= start
        return file, start, max(end, whole) if end <= whole else end, line, end <= whole

    def _node(self, cursor: Any) -> Syntax:
        kind = cursor.kind.name
        file, start, end, line, in_macro = self._extent(cursor)
        named = cursor.referenced if kind in NAMING else None
        operator = ""
        if kind in OPERATORS:
            ask = "clang_getCursorUnaryOperatorKind" if kind == "UNARY_OPERATOR" else "clang_getCursorBinaryOperatorKind"
            number = getattr(self.library, ask)(cursor)
            operator = OPERATORS[kind][number] if number < len(OPERATORS[kind]) else "?"
        declares = (kind.endswith("_DECL") and kind != "UNEXPOSED_DECL") or kind in MEMBER_FUNCTIONS
        return Syntax(
            kind=kind,
            name=cursor.spelling,
            shape=self._shape(cursor.type),
            file=file,
            start=start,
            end=end,
            line=line,
            children=tuple(self._node(child) for child in cursor.get_children()),
            operator=operator,
            refers=named.get_usr() if named is not None else "",
            declares=cursor.get_usr() if declares else "",
            name_at=cursor.location.offset if declares else -1,
            in_macro=in_macro,
            defines=declares and cursor.is_definition(),
            foreign=named is not None and self._is_foreign(named),
            offset=cursor.get_field_offsetof() // 8 if kind == "FIELD_DECL" else -1,
            bits=cursor.get_bitfield_width() if kind == "FIELD_DECL" and cursor.is_bitfield() else 0,
            bit=cursor.get_field_offsetof() if kind == "FIELD_DECL" else -1,
            bases=tuple(self._bases(cursor)) if kind in ("STRUCT_DECL", "CLASS_DECL") else (),
        )

    def _bases(self, record: Any) -> Iterator[Syntax]:
        for child in record.get_children():
            if child.kind.name == "CXX_BASE_SPECIFIER":
                base = child.type.get_canonical().get_declaration().get_definition()
                if base is not None and base.kind.name in ("STRUCT_DECL", "CLASS_DECL") and not self._is_foreign(base):
                    yield self._node(base)

    def _shape(self, of: Any) -> CType:
        canonical = of.get_canonical()
        key = canonical.spelling
        if key not in self.shapes:
            self.shapes[key] = CType("other", key)  # a type that leads to itself ends here
            self.shapes[key] = self._new_shape(canonical, key)
        return self.shapes[key]

    def _only_typedef(self, record: Any) -> Any | None:
        """The record that a typedef names and no tag, where one of that tag is never defined: people write ``struct T *``
        for pointers to ``T`` in ``typedef struct { ... } T``, and convert them."""
        typedef = self.typedefs.get(record.spelling) if record.get_definition() is None else None
        named = typedef.underlying_typedef_type.get_canonical() if typedef is not None else None
        if named is None or named.kind != self.cindex.TypeKind.RECORD or named.get_declaration() == record:
            return None
        if named.get_declaration().get_definition() is None:
            return None
        self.incomplete.add(record.get_usr())
        return named

    def _new_shape(self, canonical: Any, text: str) -> CType:
        kinds = self.cindex.TypeKind
        kind, size, align = canonical.kind, 0, 1
        if kind.name in SIZED_TYPES:
            size, align = max(0, canonical.get_size()), max(1, canonical.get_align())
        if kind == kinds.RECORD:
            if (named := self._only_typedef(canonical.get_declaration())) is not None:
                return self._shape(named)
            return CType("record", text, record=canonical.get_declaration().get_usr(), size=size, align=align)
        if kind in (kinds.POINTER, kinds.LVALUEREFERENCE, kinds.RVALUEREFERENCE):
            form = "pointer" if kind == kinds.POINTER else "reference"
            return CType(form, text, of=self._shape(canonical.get_pointee()), size=size, align=align)
        if kind in (kinds.CONSTANTARRAY, kinds.INCOMPLETEARRAY, kinds.VARIABLEARRAY):
            count = canonical.element_count if kind == kinds.CONSTANTARRAY else -1
            return CType("array", text, of=self._shape(canonical.element_type), count=count, size=size, align=align)
        if kind in (kinds.FUNCTIONPROTO, kinds.FUNCTIONNOPROTO):
            return CType("function", text, of=self._shape(canonical.get_result()))
        return CType("void" if kind == kinds.VOID else "other", text, size=size, align=align)
