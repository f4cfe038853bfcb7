"""The compiler's header of intrinsics, compiled once: gcc takes seven times as long to read it as to compile a kernel."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

FLAGS = ("-O2", "-march=haswell", "-fPIC")
"""Those of the kernels with intrinsics; with others gcc reads the header itself."""


@pytest.fixture(scope="session")
def precompiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the header as gcc finds it before its own."""
    folder = tmp_path_factory.mktemp("intrinsics")
    (folder / "all.h").write_text("#include <immintrin.h>\n")
    command = ["gcc", *FLAGS, "-x", "c-header", "-o", str(folder / "immintrin.h.gch"), str(folder / "all.h")]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(autouse=True, scope="module")
def intrinsics(precompiled: Path) -> Iterator[None]:
    """What is compiled in this folder finds it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CPATH", str(precompiled))
        yield
