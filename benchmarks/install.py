"""What an installation costs: ``python benchmarks/install.py``.

Builds the wheel of this checkout, installs it into an empty environment from the package index that pip is set up with, and
runs the demo there: bytes of the wheel, bytes of what it needs, and seconds from `pip install` to the first report.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "install.json"
VENV_OWN = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
"""What an empty environment has already."""


def timed(*command: str | Path, cwd: Path, **variables: str) -> float:
    """Seconds that a command takes."""
    environment = {**os.environ, **variables}
    environment.pop("PYTHONPATH", None)
    start = time.monotonic()
    subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    return time.monotonic() - start


def built(folder: Path) -> Path:
    """The wheel, made of the files that git knows."""
    tree = folder / "tree"
    timed("git", "clone", "-q", ROOT, tree, cwd=folder)
    timed(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, tree, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def used(environment: Path) -> int:
    """Bytes of the packages of an environment that were not in it when it was empty."""
    (packages,) = (environment / "lib").glob("python3*/site-packages")
    files = [file for file in packages.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files if file.relative_to(packages).parts[0] not in VENV_OWN)


def measured(folder: Path) -> dict[str, float]:
    """All figures."""
    wheel, home, cache = built(folder), folder / "venv", str(folder / "cache")
    timed(sys.executable, "-m", "venv", home, cwd=folder)
    installed = timed(home / "bin" / "python", "-m", "pip", "install", "-q", wheel, cwd=folder)
    command = home / "bin" / "layout-advise"
    shown = timed(command, "demo", "--recorded", "-o", folder / "recorded.layout", cwd=folder, XDG_CACHE_HOME=cache)
    criu = timed(command, "doctor", "--install", "criu", cwd=folder, XDG_CACHE_HOME=cache)
    own = timed(command, "demo", cwd=folder, XDG_CACHE_HOME=cache)
    return {
        "wheel_bytes": wheel.stat().st_size,
        "base_bytes": used(home),
        "pip_install_s": installed,
        "recorded_report_s": shown,
        "criu_s": criu,
        "demo_s": own,
    }


def main() -> None:
    """Prints the table and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="layout-advise-install-") as folder:
        found = measured(Path(folder))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    whole = found["pip_install_s"] + found["criu_s"] + found["demo_s"]
    print("| what | figure | wanted |\n|---|---|---|")
    print(f"| wheel | {found['wheel_bytes'] / 1e6:.2f} MB | 3 MB |")
    print(f"| base install | {found['base_bytes'] / 1e6:.0f} MB | 150 MB |")
    parts = f"`pip install` {found['pip_install_s']:.0f} s, CRIU {found['criu_s']:.0f} s, `demo` {found['demo_s']:.0f} s"
    print(f"| `pip install` to the first report | {whole:.0f} s ({parts}) | 180 s |")
    print(f"| a recorded report | {found['recorded_report_s']:.1f} s | |")


if __name__ == "__main__":
    main()
