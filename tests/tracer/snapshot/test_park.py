"""Programs parked at a call by the agent: what is told of them, and that nothing of it is left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import HungError, ProgramError, SnapshotError
from layout_advise.tracer.process.agent import ABI_HEADER
from layout_advise.tracer.process.patching import Entry, plan_patch
from layout_advise.tracer.process.stopped_program import CloneImage
from layout_advise.tracer.snapshot import agent_process
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.compare import compare
from layout_advise.tracer.snapshot.park import park
from tests.support.tracing.parked_programs import entry_of
from tests.support.tracing.snapshot_programs import (
    PROGRAM,
    N,
    as_double,
    build_program,
    particles_of,
)


def test_parked_state(parked: AgentProcess, program: Path) -> None:
    registers = parked.registers()
    data = particles_of(parked)
    assert registers.rip == parked.load_base + entry_of(program, "hot").address
    assert registers.gpr[7] == data.start
    assert registers.gpr[6] == N
    assert as_double(registers.vector[0]) == 0.25
    assert registers.mxcsr & 0x1F80 == 0x1F80
    particles = np.frombuffer(parked.read(data.start, 64 * N), dtype="<f8").reshape(N, 8)
    index = np.arange(N)
    assert np.array_equal(particles[:, 0], index + 4 * 0.25 * 0.5 * index)  # four calls went through
    code = entry_of(program, "hot").code
    assert parked.read(registers.rip, len(code)) == code  # pristine
    assert all(a.bytes != 1000 for a in parked.allocations())  # freed again
    assert not [p for p in Path(f"/proc/{parked.pid}/fd").iterdir() if "layout-advise" in os.readlink(p)]


def test_never_reached(program: Path) -> None:
    with pytest.raises(ProgramError, match="reached 10 times, call 11 asked; the program ended with exit status 7"):
        park([str(program), "10"], entry_of(program, "hot"), 11)
    with pytest.raises(ProgramError, match="never reached"):
        park([str(program), "10"], entry_of(program, "crash"), 1)
    with pytest.raises(ProgramError, match="1 time, call 2 asked; the program ended with killed by SIGSEGV"):
        park([str(program), "10", "crash"], entry_of(program, "crash"), 2)
    with pytest.raises(ProgramError, match="10 calls within"):
        park([str(program), "10", "hang"], entry_of(program, "hot"), 11, timeout=2)
    with pytest.raises(ProgramError, match="no such program"):
        park(["/no/such"], entry_of(program, "hot"), 1)


def test_static_program_is_told(folder: Path) -> None:
    static = build_program(folder, PROGRAM, "static", "-static")
    with pytest.raises(ProgramError, match="static or setuid"):
        park([str(static), "10"], entry_of(static, "hot"), 1)


def test_no_orphans_when_the_controller_is_killed(program: Path, folder: Path) -> None:
    script = folder / "controller.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom layout_advise.tracer.process.patching import Entry\n"
        "from layout_advise.tracer.snapshot.park import park\n"
        f"p = park([{str(program)!r}, '10'], {entry_of(program, 'hot')!r}, 2)\n".replace("PosixPath", "Path")
        + "f = p.fork()\nprint(p.pid, f.pid, flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as controller:
        assert controller.stdout is not None
        pids = [int(word) for word in controller.stdout.readline().split()]
        assert len(pids) == 2
        os.kill(controller.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(pid) for pid in pids)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_nothing_is_left_behind(program: Path) -> None:
    stopped = park([str(program), "10"], entry_of(program, "hot"), 2)
    fork = stopped.fork().fork()
    stopped.close()
    stopped.close()
    assert not _alive(stopped.pid)
    assert not _alive(fork.pid)
    assert not stopped.folder.path.exists()


def test_relocation_plans() -> None:
    def plan(code: bytes) -> tuple[bool, int]:
        made = plan_patch(Entry(Path("x"), 0x1000, code))
        return made.int3, made.size

    assert plan(bytes.fromhex("f30f1efa4889f8c3")) == (False, 7)  # endbr64; mov; ret
    assert plan(bytes.fromhex("488d0510000000c3")) == (False, 7)  # lea rax, [rip+16]
    assert plan(bytes.fromhex("89f8c3")) == (True, 2)  # too short for a jump
    assert plan(bytes.fromhex("31c048ffc04839f875f8c3")) == (True, 2)  # the loop's head is the second instruction
    with pytest.raises(SnapshotError, match="head of a loop"):
        plan(bytes.fromhex("48ffc04839f875f8c3"))
    moved = plan_patch(Entry(Path("x"), 0x1000, bytes.fromhex("741e4889f8c3")))  # je +0x1e
    assert moved.blob[:2] == b"\x0f\x84"
    assert moved.fixes[0].target == 0x1020


def test_trace_runs_a_clone_once(parked: AgentProcess, tmp_path: Path) -> None:
    """A clone written by hand: one record (rdi | 5 << 48), then the original."""
    address = 0x10_0000_0000
    code = bytes.fromhex("48b8") + (5 << 48).to_bytes(8, "little")  # mov rax, 5 << 48
    code += bytes.fromhex("4809f8 4c8b15e7ffffff 498902 498d4208".replace(" ", ""))  # or; mov r10, [next]; mov; lea
    code = code[:13] + bytes.fromhex("4c8b15") + (-(24 + 20)).to_bytes(4, "little", signed=True) + code[20:]
    code += bytes.fromhex("488905") + (-(24 + len(code) + 7)).to_bytes(4, "little", signed=True)  # mov [next], rax
    code += bytes.fromhex("48b8") + parked.registers().rip.to_bytes(8, "little") + bytes.fromhex("ffe0")  # jmp original
    image = CloneImage(address, bytes(24) + code, address + 24, ())
    records = parked.folder.path / "records"
    with parked.fork() as traced, parked.fork() as plain:
        assert traced.traced_ns is None
        assert traced.trace(image, records, 1000) == (1, False)
        assert traced.traced_ns is not None
        assert traced.traced_ns > 0
        plain.run(0)
        assert compare(parked, traced, plain).equal  # the program ran on to the return
    assert records.read_bytes() == (particles_of(parked).start | 5 << 48).to_bytes(8, "little")


def test_nothing_of_a_command_is_mapped_once_it_is_answered(parked: AgentProcess) -> None:
    """What is mapped at the park is compared later: the agent's own buffers must not be among it. On one core, and ahead of
    the program where that is allowed, so that it is seen right after its answer."""
    cores = os.sched_getaffinity(0)
    seen = set()
    try:
        os.sched_setaffinity(0, {min(cores)})
        os.sched_setaffinity(parked.pid, {min(cores)})
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        for _ in range(500):
            parked.ping()
            seen.add(tuple((m.start, m.end) for m in parked.mappings()))
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, cores)
    assert len(seen) == 1


def test_several_threads_may_fork_one_program(parked: AgentProcess) -> None:
    data = particles_of(parked)
    before = parked.read(data.start, 64 * N)

    def once(turn: int) -> bytes:
        with parked.fork() as fork:
            fork.run(0)
            return fork.read(data.start, 64 * N)

    with ThreadPoolExecutor(4) as pool:
        after = set(pool.map(once, range(12)))
    assert len(after) == 1
    assert after != {before}
    assert parked.read(data.start, 64 * N) == before


def test_forks_are_ended_whatever_they_do(program: Path) -> None:
    with park([str(program), str(N), "hang"], entry_of(program, "hot"), 5, timeout=60, command_timeout=60) as stopped:
        forks = [stopped.fork() for _ in range(2)]
        stopped.close_forks()
        for fork in forks:
            assert not _alive(fork.pid)
            with pytest.raises(SnapshotError, match="closed"):
                fork.ping()
        stopped.ping()


ENDLESS = """
#include "abi.h"
const uint32_t la_abi = LA_ABI, la_buffer_count = 0;
const struct la_buffer_spec la_buffers[1];
void la_copy_in(struct la_context *c) { (void)c; }
void la_run(struct la_context *c) { for (volatile int on = 1; on;) c->out.gpr[0]++; }
void la_copy_out(struct la_context *c) { (void)c; }
"""


def test_a_mock_up_that_does_not_end_is_given_up_after_many_times_the_original(
    parked: AgentProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_process, "LEAST_LIMIT", 0.5)
    source, target = tmp_path / "endless.c", tmp_path / "endless.so"
    source.write_text(ENDLESS)
    subprocess.run(["gcc", "-shared", "-fPIC", f"-I{ABI_HEADER.parent}", "-o", target, source], check=True)
    with parked.fork() as witness:
        number = witness.load(target)
        with witness.fork() as original:
            original.run(0)
        with witness.fork() as copy, pytest.raises(HungError) as error:
            copy.run(number)
    limit = float(error.value.why.split()[3])
    assert 0.5 <= limit < parked.timeout / 2
