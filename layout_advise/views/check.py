"""The new source is read again before anything is written."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from layout_advise.apply.rewrite.parse import parse
from layout_advise.errors import SourceError


def check(text: str, path: Path, flags: Sequence[str], folder: Path) -> None:
    """Reads the new text as ``path`` is read. Raises SourceError where a compiler would refuse it."""
    with tempfile.TemporaryDirectory(prefix="layout-advise-") as work:
        new = Path(work) / path.name
        new.write_bytes(text.encode("latin-1"))
        try:
            parse(new, (*flags, "-iquote", str(path.parent)), folder)
        except SourceError as error:
            found = re.search(rf"{re.escape(str(new))}:(\d+): (.*?)(?:;|$)", error.why)
            line = text.splitlines()[int(found[1]) - 1].strip() if found else ""
            why = f"{found[2]}: {line[:100]}" if found else error.why
            raise SourceError(f"the views of {path} would not compile", why, "nothing was written") from error
