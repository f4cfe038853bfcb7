"""C from a lifted hotspot and a candidate layout."""

from layout_advise.mockup.emit.frame import kernel_name
from layout_advise.mockup.emit.mockup import Emitted, emit, include_directories
from layout_advise.mockup.emit.settings import EmitSettings

__all__ = ["EmitSettings", "Emitted", "emit", "include_directories", "kernel_name"]
