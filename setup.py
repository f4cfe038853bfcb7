"""Only what pyproject.toml cannot say: the package list and the cffi module."""

from setuptools import find_packages, setup

FOLDERS = ("tracer", "layoutalgebra", "mockup", "reports")

setup(
    packages=[
        *find_packages(include=["layout_advise", "layout_advise.*"], exclude=[f"layout_advise.{d}*" for d in FOLDERS]),
        "layout_advise.examples",
        *(f"layout_advise.{p}" for d in FOLDERS for p in find_packages(include=[d, f"{d}.*"])),
    ],
    cffi_modules=["tracer/nlr/build_binding.py:ffi"],
    # one wheel for all Pythons from 3.11 on
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
