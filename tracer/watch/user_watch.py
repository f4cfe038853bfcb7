"""Finds the code that touches given memory between the calls of the hotspot, in a program under ptrace.

Outside the hotspot the memory is inaccessible (mprotect). Each access to it faults: the instruction and the address are
noted, its page is opened for that one instruction. After ``BURST`` accesses an instruction is known; from then on it opens a
larger part of the memory, which is closed at the next fault or after a short time: what else touches the part meanwhile
is missed, so what is reported was seen, and need not be all. System calls that get such memory run with it open.
Accesses by code of libraries are assigned to the program's code that called them: that is made non-executable until they
return to it. Nothing is claimed where the watch itself could disturb the program: it says why, and the program is killed.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from layout_advise.tracer.process.patching import RDX
from layout_advise.tracer.process.procfs import read_mappings
from layout_advise.tracer.process.ptrace import (
    CALL_ARGUMENTS,
    EVENT_CLONE,
    EVENT_STOP,
    INT3,
    NO_SYSTEM_CALL,
    SYSCALL_CODE,
    UserRegisters,
    signed,
)
from layout_advise.tracer.process.seized import SYSTEM_CALL, Seized, StopEvent, ThreadGone
from layout_advise.tracer.watch.call_buffers import EFAULT, buffers, call_name, remapped
from layout_advise.tracer.watch.faulting import Operands
from layout_advise.tracer.watch.guarded_memory import SLICE, GuardedMemory, WatchOver
from layout_advise.tracer.watch.watched import Course, OwnCode, Pages, Watched, WatchedTouch

BURST = 64
"""Accesses of one instruction that are looked at one by one."""
AT_FIRST = 1.0
"""Seconds within which other threads stop, unless the kernel holds them."""
_GETPID = 39


class UserWatch:
    """One watch of a program that stands at the entry of its hotspot. ``gone`` is asked at each entry why the memory is no
    longer what it was, if so."""

    def __init__(
        self, process: Seized, thread: int, course: Course, memory: Sequence[Pages], own: OwnCode, gone: Callable[[], str]
    ) -> None:
        self._process, self._thread, self._course, self._own, self._gone = process, thread, course, own, gone
        self._memory = GuardedMemory(process, own.gate, memory)
        self._call = course.call
        self._inside, self._slot = True, 0
        self._touches: list[WatchedTouch] = []
        self._seen: dict[int, int] = {}
        self._last = thread
        self._gapless = True
        self._breakpoints: dict[int, bytes] = {}
        self._former: set[int] = set()
        self._granted: dict[int, UserRegisters | None] = {}
        self._calling: set[int] = set()
        self._shut, self._shut_by, self._pending = False, 0, list[int]()
        self._operands = Operands(process.read)
        self._string: tuple[int, int, list[int]] | None = None  # executed just now: where, what is left, where it will end

    def run(self, seconds: float, most: float) -> Watched:
        """Let the program run for so long, and up to ``most`` seconds where the next call has not come by then."""
        begun, reason, ended = time.monotonic(), "", False
        try:
            self._stop_others(begun + AT_FIRST)
            self._enter(self._thread, self._process.registers_of(self._thread))
            while (now := time.monotonic()) < (end := begun + (seconds if self._call > self._course.call else most)):
                stop = self._process.wait(min(end, self._memory.slice_end) if self._memory.slice_end else end)
                if stop is not None:
                    with contextlib.suppress(ThreadGone):  # its end is the next that is seen
                        self._on(stop)
                elif self._memory.slice_end and now >= self._memory.slice_end:
                    self._expire()
        except WatchOver as over:
            reason = str(over)
            ended = not reason
        except ChildProcessError:
            ended = True
        return Watched(self._course.call, self._call, tuple(self._touches), ended, self._gapless, reason)

    def _stop_others(self, until: float) -> None:
        """Stops each other thread once, and sets it off again: from now on its system calls are seen, also the one that it
        is in. One that were still in a call when the memory is closed would get an error for it."""
        others = {thread for thread in self._process.threads if thread != self._thread}
        for thread in others:
            self._process.interrupt(thread)
        while others and (stop := self._process.wait(until)) is not None:
            others.discard(stop.thread)
            self._on(stop)

    def _on(self, stop: StopEvent) -> None:
        thread = stop.thread
        if stop.ended:
            if thread == self._process.pid:
                raise WatchOver("" if stop.ended.startswith("exit") else f"it was {stop.ended} while it was watched")
        elif stop.event == EVENT_STOP and self._memory.expired and thread not in self._calling:
            self._on_time(thread)
        elif stop.event in (EVENT_CLONE, EVENT_STOP):
            self._resume(thread)
        elif stop.event:
            raise WatchOver("it starts other processes between the calls, which are not followed")
        elif stop.signal == SYSTEM_CALL:
            self._on_call(thread)
        elif stop.signal == signal.SIGTRAP:
            self._on_trap(thread)
        elif stop.signal == signal.SIGSEGV:
            self._on_fault(thread)
        else:
            self._resume(thread, stop.signal)

    def _resume(self, thread: int, signal_number: int = 0) -> None:
        calls = not self._inside or thread in self._calling or thread != self._thread
        self._process.resume(thread, calls=calls, signal_number=signal_number)

    # the hotspot

    def _break(self, address: int) -> None:
        if address not in self._breakpoints:
            self._breakpoints[address] = self._process.read(address, 1)
            self._process.write(address, INT3)

    def _unbreak(self) -> None:
        for address, byte in self._breakpoints.items():
            self._process.write(address, byte)
        self._former |= self._breakpoints.keys()
        self._breakpoints.clear()

    def _enter(self, thread: int, registers: UserRegisters) -> None:
        why = self._gone()
        if why:
            raise WatchOver(why)
        self._unbreak()
        self._gapless = self._gapless and not self._memory.missed
        self._thread, self._slot, self._inside = thread, registers.rsp, True
        self._process.set_registers_of(thread, registers)
        if self._call > self._course.call:
            self._memory.keeping_registers(thread, self._memory.open_all)
        back = int.from_bytes(self._process.read(registers.rsp, 8), "little")
        for address in self._course.exits or (back,):
            self._break(address)
        self._resume(thread)

    def _leave(self, thread: int, registers: UserRegisters) -> None:
        self._unbreak()
        self._process.set_registers_of(thread, registers)
        self._inside = False
        self._memory.after_call()
        self._memory.keeping_registers(thread, self._close_all)
        self._break(self._course.entry)
        self._resume(thread)

    def _handed(self, registers: UserRegisters) -> int:
        """The body that a call of the function which starts regions is handed."""
        return int(registers.rdx if self._course.register == RDX else registers.rdi)

    def _on_trap(self, thread: int) -> None:
        registers = self._process.registers_of(thread)
        address = registers.rip - 1
        if address not in self._breakpoints:
            if address in self._former:  # another thread came to it first, and it was taken away
                registers.rip = address
                self._process.set_registers_of(thread, registers)
            self._resume(thread, 0 if address in self._former else signal.SIGTRAP)
            return
        registers.rip = address
        if not self._inside and (not self._course.outlined or self._handed(registers) == self._course.outlined):
            self._call += 1
            self._enter(thread, registers)
        elif self._inside and thread == self._thread and (self._course.exits or registers.rsp == self._slot + 8):
            self._leave(thread, registers)
        else:
            self._process.write(address, self._breakpoints[address])
            self._process.set_registers_of(thread, registers)
            self._process.step(thread)
            self._process.write(address, INT3)
            self._resume(thread)

    # accesses

    def _on_fault(self, thread: int) -> None:
        address, registers = self._process.fault_address(thread), self._process.registers_of(thread)
        if address == registers.rip and self._own.holds(address):
            if self._shut:  # else another thread came back first
                self._memory.keeping_registers(thread, self._unshut)
                self._returned(thread, registers.rip)
            self._resume(thread)
            return
        pages = self._memory.find(address)
        if pages is None:
            self._resume(thread, signal.SIGSEGV)
            return
        if self._inside or self._memory.everything:  # opened since: it goes on
            self._resume(thread)
            return
        self._memory.close(thread)
        self._record(registers, address)
        self._ask_for_caller(thread, registers.rip)
        self._seen[registers.rip] = count = self._seen.get(registers.rip, 0) + 1
        if count <= BURST:
            self._memory.step(thread, registers, address)
        else:
            self._memory.open_part(thread, pages, address)
            self._last = thread
            self._process.set_registers_of(thread, registers)
        self._resume(thread)

    def _expire(self) -> None:
        """Stops the thread for which memory was opened for a short time, so that it can be closed."""
        self._memory.slice_end = 0.0
        if self._last not in self._calling:
            self._process.interrupt(self._last)

    def _on_time(self, thread: int) -> None:
        """The thread stopped because time is over; a fault or breakpoint that it had come to meanwhile comes first. A step
        through a system call would last as long as that."""
        if self._process.read(self._process.registers_of(thread).rip, 2) == SYSCALL_CODE:
            self._memory.slice_end = time.monotonic() + SLICE
            self._resume(thread)
            return
        stop = self._process.step(thread)
        if stop.ended or stop.signal == signal.SIGSEGV:
            self._on(stop)
        elif self._process.registers_of(thread).rip - 1 in self._breakpoints:
            self._on_trap(thread)
        else:
            if None not in self._granted.values():  # system calls of other threads are using it
                self._memory.keeping_registers(thread, self._memory.close)
            self._resume(thread)

    def _record(self, registers: UserRegisters, address: int) -> None:
        """A string instruction faults at each step that it takes by itself: it is noted once, with all that it will do."""
        accesses = self._operands.accesses(registers, address)
        before, self._string = self._string, None
        if self._operands.repeats(registers):
            self._string = registers.rip, registers.rcx, [at + size for _, at, size in accesses]
        goes_on = before and self._string and self._string[::2] == before[::2] and self._string[1] < before[1]
        for kind, at, size in () if goes_on else accesses:
            found = self._memory.find(at) or self._memory.find(at + size - 1)
            if found is not None:
                self._touches.append(WatchedTouch(found.structure, registers.rip, kind, at, size, self._call))

    # who called the library

    def _ask_for_caller(self, thread: int, pc: int) -> None:
        """The program's code is not executable until the library returns to it."""
        if self._own.holds(pc) or not self._own.pages:
            return
        self._pending.append(len(self._touches) - 1)
        if not self._shut:
            self._shut, self._shut_by = True, thread
            for pages in self._own.pages:
                self._memory.protect(thread, pages, 1)

    def _unshut(self, thread: int) -> None:
        self._shut = False
        for pages in self._own.pages:
            self._memory.protect(thread, pages, pages.protection)

    def _returned(self, thread: int, address: int) -> None:
        if thread == self._shut_by and not self._own.is_start(address):  # else the library calls the program
            for number in self._pending:
                self._touches[number] = replace(self._touches[number], caller=address)
        self._pending.clear()

    # system calls

    def _on_call(self, thread: int) -> None:
        registers = self._process.registers_of(thread)
        if self._process.enters_call(thread):
            self._calling.add(thread)
            if thread not in self._granted and self._given(registers):
                if self._memory.everything or self._inside:  # it may last until that is over
                    self._granted[thread] = None
                    self._resume(thread)
                    return
                self._granted[thread] = registers
                held = UserRegisters.from_buffer_copy(registers)
                held.orig_rax = _GETPID  # the call itself comes when the memory is open
                self._process.set_registers_of(thread, held)
            self._resume(thread)
            return
        self._calling.discard(thread)
        result = signed(registers.rax)
        if thread not in self._granted:
            if result == EFAULT:  # perhaps for our sake: once more, with the memory open
                self._memory.missed = True
                self._again(thread, registers, registers.orig_rax)
        elif (held_back := self._granted[thread]) is not None:
            self._again(thread, held_back, held_back.orig_rax)
        else:
            del self._granted[thread]
            if not self._inside:
                self._memory.keeping_registers(thread, self._close_all)
        self._resume(thread)

    def _close_all(self, thread: int) -> None:
        """Makes all of it inaccessible, unless system calls of other threads are using it."""
        if None in self._granted.values():
            self._memory.missed = True
        else:
            self._memory.close_all(thread)

    def _again(self, thread: int, registers: UserRegisters, number: int) -> None:
        """The thread makes the system call (once more) with all memory open."""
        if not self._inside:
            self._memory.open_all(thread)
            self._ask_for_caller_of_call(thread, registers.rip)
        registers.rip, registers.rax, registers.orig_rax = registers.rip - 2, number, NO_SYSTEM_CALL
        self._process.set_registers_of(thread, registers)
        self._granted[thread] = None

    def _ask_for_caller_of_call(self, thread: int, after: int) -> None:
        if self._touches and self._touches[-1].pc == after - 2 and self._touches[-1].system:
            self._ask_for_caller(thread, after)

    def _heap_end(self) -> int:
        return max((m.end for m in read_mappings(self._process.pid) if m.path == "[heap]"), default=0)

    def _given(self, registers: UserRegisters) -> bool:
        """Returns whether the call reads or writes watched memory; noted if so."""
        arguments = tuple(int(getattr(registers, name)) for name in CALL_ARGUMENTS)
        for start, end in remapped(registers.orig_rax, arguments, self._heap_end):
            if self._memory.overlaps(start, end):
                raise WatchOver("its memory is freed, moved or protected between the calls")
        name, found = call_name(registers.orig_rax), False
        for buffer in buffers(registers.orig_rax, arguments, self._process.read):
            for pages in self._memory.pages:
                low, high = max(buffer.address, pages.start), min(buffer.address + buffer.bytes, pages.end)
                if low < high:
                    found = True
                    pc = registers.rip - 2
                    self._touches.append(
                        WatchedTouch(pages.structure, pc, buffer.kind, low, high - low, self._call, None, name)
                    )
        return found
