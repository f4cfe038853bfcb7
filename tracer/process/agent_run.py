"""One run of a program with the agent in it, from the folder of its orders to the end of all that it started."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from layout_advise.tracer.offspring.marks import fresh_mark
from layout_advise.tracer.process.agent import agent_path
from layout_advise.tracer.process.channel import Orders, RunFolder
from layout_advise.tracer.process.launch import Start, kill_session, launch

_NO_TABLES: Mapping[str, int] = MappingProxyType({})
_NO_FILES: Mapping[str, bytes] = MappingProxyType({})


@contextlib.contextmanager
def agent_run(
    start: Start,
    orders: Orders,
    *,
    tables: Mapping[str, int] = _NO_TABLES,
    heads: Mapping[str, bytes] = _NO_FILES,
    files: Mapping[str, bytes] = _NO_FILES,
    spare_children: bool = False,
) -> Iterator[tuple[RunFolder, subprocess.Popen[bytes]]]:
    """The started program and the folder that it shares with us; at the end it is killed and the folder removed.

    ``tables`` are files of the folder that the agent fills, with their bytes, ``heads`` what some of them begin with;
    ``files`` are others that it reads.
    ``spare_children``: what the program started lives on where the program itself has ended.
    """
    folder = RunFolder()
    process: subprocess.Popen[bytes] | None = None
    mark = fresh_mark(spared=spare_children)
    try:
        folder.configure(orders, start.preload)
        for name, size in tables.items():
            with open(folder.path / name, "wb") as handle:
                handle.write(heads.get(name, b""))
                handle.truncate(size)  # sparse
        for name, data in files.items():
            (folder.path / name).write_bytes(data)
        agent_path()  # the first time it is compiled, which is no part of the program's time
        folder.begun = time.monotonic()
        process = launch(start, folder.path, mark)
        yield folder, process
    finally:
        if process is not None and not (spare_children and process.poll() is not None):
            kill_session(process, mark)
        folder.close()
