"""Takes the pictures of the report in ``docs/``: ``python -m tests.support.shipping.take_pictures``.

They show the recorded run of the demo, as `layout-advise demo --recorded` does, in a headless chromium.
"""

from __future__ import annotations

import html as markup
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from layout_advise.reports.model.contract import decode
from layout_advise.reports.pages import html
from tests.support.paths import ROOT
from tests.support.shipping.record_demo import RECORDED

SCREENS = ROOT / "docs" / "screens"
FIRST = ROOT / "docs" / "report.png"
"""The picture on the front page."""
DESKTOP, PHONE, PAPER = (1280, 800), (400, 800), (794, 1123)
"""Pixels; paper is A4 at 96 to the inch."""
NARROWEST = 500
"""Pixels of a window of chromium; a narrower page is shown in a frame."""
BROWSER = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
DARK, LIGHT = ("--blink-settings=preferredColorScheme=0",), ("--blink-settings=preferredColorScheme=1",)
PICTURES = {
    "desktop.png": (DESKTOP, LIGHT),
    "dark.png": (DESKTOP, DARK),
    "phone.png": (PHONE, LIGHT),
    "print.png": (PAPER, LIGHT),
}


def recorded_page() -> str:
    """The page of the recorded run."""
    with zipfile.ZipFile(RECORDED) as packed:
        return html.render(decode(packed.read("report.json")), "demo.layout")


def picture(text: str, file: Path, size: tuple[int, int], options: tuple[str, ...], folder: Path) -> None:
    """Writes what the first ``size`` pixels of a page show as PNG."""
    width, height = size
    if width < NARROWEST:
        frame = f'<iframe style="border:0" width="{width}" height="{height}" srcdoc="{markup.escape(text)}"></iframe>'
        text = f'<!doctype html><body style="margin:0">{frame}</body>'
    page = folder / "page.html"
    page.write_text(text)
    window = (f"--user-data-dir={folder / 'profile'}", f"--window-size={max(width, NARROWEST)},{height}")
    taken = folder / "taken.png"
    subprocess.run(
        [*BROWSER, *window, *options, f"--screenshot={taken}", page.as_uri()], capture_output=True, timeout=100, check=True
    )
    _cut(taken, file, size)


def _cut(taken: Path, file: Path, size: tuple[int, int]) -> None:
    """The upper left part of a picture, with 256 colours at most: a fifth of the bytes."""
    from PIL import Image

    with Image.open(taken) as whole:
        whole.convert("RGB").crop((0, 0, *size)).quantize(256).save(file, optimize=True)


def on_paper(text: str) -> str:
    """The page with its styles for paper, all parts open."""
    return text.replace("@media print", "@media all").replace("<details", "<details open")


def take(into: Path) -> None:
    """Takes all pictures into a folder."""
    text = recorded_page()
    shown = {"print.png": on_paper(text)}
    with tempfile.TemporaryDirectory(prefix="pictures-") as folder:
        for name, (size, options) in PICTURES.items():
            picture(shown.get(name, text), into / name, size, options, Path(folder))


def main() -> int:
    """Takes those of ``docs/``."""
    SCREENS.mkdir(exist_ok=True)
    take(SCREENS)
    FIRST.write_bytes((SCREENS / "desktop.png").read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
