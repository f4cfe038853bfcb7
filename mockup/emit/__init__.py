"""C from a lifted hotspot and a candidate layout."""

from layout_advise.mockup.emit.frame import kernel_name
from layout_advise.mockup.emit.mockup import Emitted, emit, emit_mockup, include_directories

__all__ = ["Emitted", "emit", "emit_mockup", "include_directories", "kernel_name"]
