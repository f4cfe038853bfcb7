"""The scripts in benchmarks/, which are no package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from tests.support.paths import ROOT


def script(name: str) -> ModuleType:
    """``benchmarks/NAME.py``, known by the last part of that name from then on."""
    path = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    if str(path.parent) not in sys.path:  # the scripts import one another
        sys.path.append(str(path.parent))
    spec.loader.exec_module(module)
    return module
