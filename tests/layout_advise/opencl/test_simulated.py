"""Recorded accesses against Oclgrind, which counts loads and stores of the unchanged kernel by itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from layout_advise.errors import UsageError
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.measure.jobs import name_of
from layout_advise.opencl.measure.processes import items_of
from layout_advise.opencl.measure.record import record_job
from layout_advise.opencl.source.read import read_program
from tests.support.opencl.kernels import FORCES, device, forces_launch
from tests.support.paths import ROOT

ITEMS = 64
RUN = f"""
from tests.support.opencl.kernels import forces_launch
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.host.session import DeviceSession
launch, session = forces_launch({ITEMS}), DeviceSession(devices("oclgrind")[0])
program = session.build(launch.source, "-cl-opt-disable", "k.cl")
buffers = [session.buffer(data) for data in launch.buffers]
kernel = session.prepared(program, launch.kernel, launch.arguments, buffers)
session.launch(kernel, launch.global_size, launch.local_size)
"""


def test_as_many_accesses_as_the_simulator_counts() -> None:
    device()
    try:
        devices("oclgrind")
    except UsageError:
        pytest.skip("needs Oclgrind")
    environment = {**os.environ, "OCLGRIND_INST_COUNTS": "1"}
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    counted = {kind: int(n) for n, kind in re.findall(r"(\d+) - (load|store) global", done.stdout)}
    program = read_program(FORCES)
    items = items_of(record_job(program, program.records[0], forces_launch(ITEMS), name_of(device()), ITEMS, 4096))
    assert len(items) == ITEMS
    recorded = sum(map(len, items))
    # beside the record each turn of the loop loads the scale; `+=` and `-=` are noted once, and load and store
    assert counted == {"load": recorded + ITEMS * ITEMS, "store": 2 * ITEMS}
