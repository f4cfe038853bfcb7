"""C from a lifted form and a candidate layout.

In come a form, a re-indexing plan and settings, out comes the text of a mock-up with the exports of
``tracer/agent/abi.h``. ``mockup`` puts it together: ``frame`` (buffers, registers in and out), ``arrays`` (pointers)
or ``statics`` (static arrays), ``scope`` (declarations and names), ``program`` (the body) with ``memory`` (accesses),
``places`` (addresses) and ``site_indices`` (what they start from), ``c_text`` (expressions) and ``calls_c``, ``copies``
(conversion). ``settings`` are the caller's, ``writer_state`` is what the writers share. ``packs/`` and ``simd/`` write
vector statements; ``replay`` writes loads and stores alone.
"""

from layout_advise.mockup.emit.frame import kernel_name
from layout_advise.mockup.emit.mockup import Emitted, emit, include_directories
from layout_advise.mockup.emit.settings import EmitSettings

__all__ = ["EmitSettings", "Emitted", "emit", "include_directories", "kernel_name"]
