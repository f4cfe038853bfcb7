"""Tests that call compiled kernels and mock-ups by their addresses are run in processes that can be killed: one that never
ends heeds no signal of Python's, and one that crashes would end all tests."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import pytest

from tests.support.killable import EndedError, FailedError, in_child

NATIVE = ("tests.support.mockups.", "tests.support.lifting.kernel_library", "layout_advise.mockup.run.load")
"""What calls native code in this process."""


def calls_native_code(values: Iterable[object]) -> bool:
    """Returns whether a module with these values names something that calls native code, or :mod:`ctypes`."""
    return any(value is ctypes or str(getattr(value, "__module__", "")).startswith(NATIVE) for value in values)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call a test in a child of this process, within the time that it has; its failure is told here."""
    if not calls_native_code(vars(pyfuncitem.module).values()):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    given = {name: pyfuncitem.funcargs[name] for name in names}
    try:
        in_child(lambda: pyfuncitem.obj(**given), None, (pytest.skip.Exception,))
    except EndedError as error:
        pytest.fail(f"its process {error}", pytrace=False)
    except FailedError as error:
        pytest.fail(str(error), pytrace=False)
    return True
