"""Work for a fresh process: layouts of a program on one device, and what to do with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.host.variants import KernelVariant
from layout_advise.opencl.measure.verify import Compared


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A device by its platform, its name, and its number among those of both."""

    platform: str
    name: str
    number: int = 0

    def find(self) -> Any:
        """The device in this process."""
        found = [d for d in devices(self.name) if (d.platform.name, d.name) == (self.platform, self.name)]
        return found[self.number]


def name_of(device: Any) -> DeviceName:
    """The name by which another process finds a device."""
    alike = [d for d in device.platform.get_devices() if d.name == device.name]
    return DeviceName(device.platform.name, device.name, alike.index(device))


@dataclass(frozen=True, slots=True, eq=False)
class KernelJob:
    """The first variant is the original. ``turn`` rotates the order in which they are timed; ``moves``: also what it takes
    to have each buffer on the device, in each layout."""

    device: DeviceName
    variants: tuple[KernelVariant, ...]
    seconds: float
    turn: int = 0
    conversions: bool = False
    moves: bool = False


@dataclass(frozen=True, slots=True)
class ConversionTime:
    """Milliseconds of bringing the records of all launches into a layout and back, in two ways, and of the transfers."""

    kernel_in: float
    kernel_out: float
    host_in: float
    host_out: float

    @property
    def best_in(self) -> float:
        """The faster way there."""
        return min(self.kernel_in, self.host_in)

    @property
    def best_out(self) -> float:
        """The faster way back."""
        return min(self.kernel_out, self.host_out)


@dataclass(frozen=True, slots=True)
class BufferMove:
    """Nanoseconds of one buffer: its transfer from the host to a device and back, and its conversion into a layout and back,
    by a kernel there and by the host; none where it keeps its layout."""

    sent: float
    fetched: float
    kernel_in: float = 0.0
    kernel_out: float = 0.0
    host_in: float = 0.0
    host_out: float = 0.0

    @property
    def to_device(self) -> float:
        """From the host, in the program's layout there."""
        return self.sent + min(self.kernel_in, self.host_in)

    @property
    def to_host(self) -> float:
        """Back to the host."""
        return self.fetched + min(self.kernel_out, self.host_out)


@dataclass(frozen=True, slots=True, eq=False)
class VariantOutcome:
    """The result of one variant in one process: how its first calls compare with the original's, and the undisturbed times
    of its launches in ns, all calls weighed; or its ``problem``."""

    device: float
    wall: float
    cpu: float = 0.0
    problem: str = ""
    compared: Compared | None = None
    conversion: ConversionTime | None = None
    walls: tuple[float, ...] = ()
    """By launch, ns of one call by the host's clock."""
    moves: tuple[tuple[BufferMove, ...], ...] = ()
    """By launch and buffer of the original, where that was asked for."""
