"""The references of a trace as a table: CSV and Parquet, the same columns in both."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from layout_advise.commands.folded.show_rows import Row
from layout_advise.errors import MachineError, RunDirError
from layout_advise.reports.words.stream_words import stream_text

COLUMNS = {
    "pc": "uint64",
    "operand": "int32",
    "kind": "string",
    "bytes": "int32",
    "count": "int64",
    "function": "string",
    "file": "string",
    "line": "int32",
    "low": "uint64",
    "high": "uint64",
    "objects": "string",
    "stream": "string",
    "inlined": "string",
    "loop": "int32",
    "thread": "int32",
}
"""Names and Parquet types; what is not known is null there and empty in CSV."""

ADDRESSES = ("pc", "low", "high")


def records(found: Sequence[Row]) -> list[dict[str, Any]]:
    """One dictionary a reference, by column."""
    return [
        {
            "pc": row.reference.pc,
            "operand": row.reference.operand,
            "kind": row.reference.kind,
            "bytes": row.reference.bytes,
            "count": row.count,
            "function": row.function,
            "file": row.source.file if row.source else None,
            "line": row.source.line if row.source else None,
            "low": row.low,
            "high": row.high,
            "objects": "; ".join(row.objects),
            "stream": stream_text(row.stream),
            "inlined": "; ".join(f"{c.function} at {c.file}:{c.line}" for c in row.inlined),
            "loop": row.loop,
            "thread": row.reference.thread,
        }
        for row in found
    ]


def as_csv(found: Sequence[Row]) -> str:
    """One line a reference under a line of names, addresses in hex; what is not known is empty."""
    text = io.StringIO()
    sheet = csv.writer(text, lineterminator="\n")
    sheet.writerow(COLUMNS)
    for record in records(found):
        sheet.writerow([_cell(name, record[name]) for name in COLUMNS])
    return text.getvalue()


def _cell(name: str, value: Any) -> Any:
    if value is None:
        return ""
    return hex(value) if name in ADDRESSES else value


def write_parquet(found: Sequence[Row], path: Path) -> None:
    """The same table as a Parquet file."""
    write_table(records(found), COLUMNS, path)


def write_table(rows: Sequence[dict[str, Any]], columns: Mapping[str, str], path: Path) -> None:
    """Rows as a Parquet file with ``columns`` by name and type; replaced at once or not at all. Raises :class:`MachineError`
    without pyarrow, :class:`RunDirError` where it cannot be written."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        hint = "pip install 'layout-advise[parquet]', or use --csv"
        raise MachineError(f"cannot write {path}", "pyarrow is not installed", hint) from error
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in columns.items()])
    table = pyarrow.Table.from_pylist(list(rows), schema=schema)
    try:
        with tempfile.NamedTemporaryFile(dir=path.absolute().parent, prefix=f".{path.name}.", delete=False) as scratch:
            temporary = Path(scratch.name)
        try:
            pyarrow.parquet.write_table(table, temporary, compression="zstd")
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise RunDirError(f"cannot write {path}", error.strerror or str(error)) from error
