"""Records the run of `demo --recorded`: ``python -m tests.support.shipping.record_demo``, on a quiet machine."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.support.paths import ROOT

RECORDED = ROOT / "examples" / "recorded" / "demo.zip"
LEFT_OUT = ("mockups", "report.html")
"""Built again of the rest, or on another machine of no use."""
WHEN = (2026, 1, 1, 0, 0, 0)
"""Each file's time in the archive, so that the same run makes the same bytes."""


def pack(run: Path, archive: Path) -> None:
    """The files of a run directory that are worth keeping, as a zip."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for file in sorted(run.rglob("*")):
            name = file.relative_to(run)
            if file.is_file() and not set(name.parts) & set(LEFT_OUT):
                packed.writestr(zipfile.ZipInfo(str(name), WHEN), file.read_bytes(), zipfile.ZIP_DEFLATED)


def main() -> None:
    """Runs the demo in a folder of its own, whose name is in the places of the source, and packs it."""
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        subprocess.run([sys.executable, "-m", "layout_advise", "demo"], cwd=folder, check=True)
        pack(Path(folder) / "demo.layout", RECORDED)


if __name__ == "__main__":
    main()
