"""C from a lifted hotspot and a candidate layout."""

from layout_advise.mockup.emit.mockup import emit_mockup, include_directories, kernel_name

__all__ = ["emit_mockup", "include_directories", "kernel_name"]
