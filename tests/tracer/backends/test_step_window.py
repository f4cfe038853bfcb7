# ruff: noqa: E501  (C source, a line a statement list)
"""Single steps of calls that do not simply return, and of programs with threads, children and signals: a right trace or a clear line."""

from __future__ import annotations

import contextlib
import functools
import time
from pathlib import Path
from typing import cast

import pytest

from layout_advise.errors import ProgramError
from layout_advise.tracer.backends.protocol import Rerun, TracedCall
from layout_advise.tracer.backends.step.record import StepBackend
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park
from tests.support import slower
from tests.support.tracing.trace_requests import request
from tests.support.tracing.window_programs import BODIES, LOOP, MAIN, PROGRAMS, accessed, compiled

FORKS = "static void forks() { pid_t p = fork(); int s; if (!p) { hot(7); _exit(9); } waitpid(p, &s, 0); if (!WIFEXITED(s) || WEXITSTATUS(s) != 9) abort(); }"
HANDLER = "static volatile long runs; static void handler(int) { data[998] = 7; runs++; }"
TIMER = "static void timer() { signal(SIGALRM, handler); struct itimerval t = {{0, 20000}, {0, 20000}}; setitimer(ITIMER_REAL, &t, 0); }"
SPAWN = 'static void spawn() { if (system("exit 5") != 5 << 8) abort(); }'
BUSY = "static volatile int stop; static void *busy(void *) { while (!stop) other[3]++; return 0; }"
DECLARED = 'extern "C" void hot(long);'
CALLS = DECLARED + " static void *calls(void *) { for (int i = 0; i < 40; i++) hot(100); return 0; }"
STEPPED = {
    **PROGRAMS,
    **{name: BODIES[name] for name in ("plain", "worker", "threads")},
    "fork before": f"{LOOP} }} {FORKS} int main() {{ hot(100); forks(); {MAIN}",
    "child of a call": f"{LOOP} if (n == 100) for (int i = 0; i < 3; i++) {{ pid_t p = fork(); int s; if (!p) _exit(4); waitpid(p, &s, 0); if (s != 4 << 8) abort(); }} }} int main() {{ {MAIN}",
    "spawned before": f"{LOOP} }} {SPAWN} int main() {{ hot(100); spawn(); {MAIN}",
    "spawned within": f"{SPAWN} {LOOP} spawn(); data[999] = 1; }} int main() {{ {MAIN}",
    "children signal": f"{HANDLER} {LOOP} }} {FORKS} int main() {{ signal(SIGCHLD, handler); hot(100); forks(); if (!runs) abort(); {MAIN}",
    "alarms": f"{HANDLER} {TIMER} {LOOP} runs = 0; while (n > 100 && runs < 5) data[999] = 1; }} int main() {{ hot(100); timer(); while (!runs); hot(101); }}",
    "handler on the stack": f"{HANDLER} {LOOP} raise(SIGUSR1); data[999] = runs; }} int main() {{ signal(SIGUSR1, handler); {MAIN}",
    "ignored": f"{LOOP} raise(SIGCHLD); raise(SIGURG); data[999] = n; }} int main() {{ {MAIN}",
    "left by the handler": f"static sigjmp_buf out; static void leave(int) {{ siglongjmp(out, 1); }} {LOOP} raise(SIGUSR1); data[999] = 1; }} int main() {{ signal(SIGUSR1, leave); for (volatile int k = 0; k < 3; k++) {{ if (!sigsetjmp(out, 1)) hot(100 + k); else for (int i = 0; i < 500; i++) other[i]++; }} }}",
    "busy": f"{BUSY} {LOOP} }} int main() {{ pthread_t t; pthread_create(&t, 0, busy, 0); for (int k = 0; k < 3; k++) hot(100 + k); stop = 1; pthread_join(t, 0); }}",
    "all call": f"{CALLS} {LOOP} }} int main() {{ pthread_t t[3]; for (int i = 0; i < 3; i++) pthread_create(t + i, 0, calls, 0); calls(0); for (int i = 0; i < 3; i++) pthread_join(t[i], 0); for (int i = 0; i < 80; i++) data[i] = 1; hot(300); }}",
    "threads come and go": f"static void *nothing(void *) {{ return 0; }} {CALLS.replace('hot(100);', '{ pthread_t t; pthread_create(&t, 0, nothing, 0); hot(100); pthread_join(t, 0); }')} {LOOP} }} int main() {{ pthread_t t[2]; for (int i = 0; i < 2; i++) pthread_create(t + i, 0, calls, 0); for (int i = 0; i < 2; i++) pthread_join(t[i], 0); hot(300); }}",
    "exec": f"{LOOP} }} int main(int n, char **v) {{ if (n < 2) execl(v[0], v[0], \"again\", (char *)0); {MAIN}",
    "alternate stack beside": f"{HANDLER} {LOOP} raise(SIGUSR1); }} int main() {{ char room[1 << 16]; stack_t s = {{}}; s.ss_sp = room; s.ss_size = sizeof room; sigaltstack(&s, 0); struct sigaction a = {{}}; a.sa_handler = handler; a.sa_flags = SA_ONSTACK; sigaction(SIGUSR1, &a, 0); {MAIN}",
    "sleeps": f"{LOOP} }} int main() {{ sleep(1000); {MAIN}",
    "sleeps within": f"{LOOP} sleep(1000); }} int main() {{ {MAIN}",
    "very often": f"{LOOP} }} int main() {{ for (long k = 0; k < 100000000; k++) hot(1); {MAIN}",
    "endless": f"{LOOP} while (n) other[0] = 1; }} int main() {{ {MAIN}",
}  # fmt: skip


def stepped(folder: Path, name: str, call: int) -> tuple[TracedCall, dict[str, int]]:
    """The trace, and how often the program's own code accessed each variable."""
    program, binary, entry = compiled(folder, "#include <sys/time.h>\n" + STEPPED[name])
    with park([str(program)], entry, call, timeout=60) as parked:
        region = functools.partial(binary.region, binary.find("hot"), callees=True)
        found = StepBackend().trace(request(parked, region, Rerun([str(program)], entry, call, 100_000, timeout=60)))
        counts = accessed(found.trace, binary, parked.load_base)
    return found, counts


@pytest.mark.parametrize(
    ("name", "call", "data"),
    [
        ("recursion", 3, 101 + 1 + 2),
        ("fork", 2, 101),
        *slower(("child of a call", 1, 100)),
        *slower(("fork before", 3, 101)),
        *slower(("spawned before", 3, 101)),
        ("spawned within", 2, 101 + 1),
        *slower(("children signal", 3, 101)),
        ("signal", 2, 101),
        ("handler on the stack", 2, 101 + 1),
        *slower(("ignored", 2, 101 + 1)),
        ("left by the handler", 2, 101),
        ("longjmp", 2, 101),
        ("exception", 2, 101),
        *slower(("caught within", 2, 101 + 2)),
        ("descriptors", 2, 101),
        ("worker", 2, 101),
        ("threads", 2, 101),
        *slower(("busy", 3, 102)),
        ("three bytes", 2, 1),
    ],
)
def test_exactly_the_call_is_stepped(tmp_path: Path, name: str, call: int, data: int) -> None:
    found, counts = stepped(tmp_path, name, call)
    assert counts["data"] == data
    assert (found.trace.backend, found.trace.truncated) == ("step", False)
    assert found.trace.others == (name in ("worker", "threads", "busy"))


def test_signals_that_come_at_any_time(tmp_path: Path) -> None:
    _, counts = stepped(tmp_path, "alarms", 2)
    assert counts["data"] > 101
    assert counts["other"] == 0


@pytest.mark.parametrize(("name", "call"), [("all call", 161), ("threads come and go", 81)])
def test_calls_by_many_threads_are_all_counted(tmp_path: Path, name: str, call: int) -> None:
    _, counts = stepped(tmp_path, name, call)
    assert counts["data"] == 300


def running(program: Path) -> list[Path]:
    """Processes of the program, in /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/exe"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            found += [path] if path.readlink() == program else []
    return found


@pytest.mark.parametrize(
    ("name", "call", "why"),
    [
        ("exit", 2, "call 2 of hot was not traced step by step: the traced program ended: exit status 3"),
        ("plain", 4, "call 4 of hot was not reached step by step: the traced program ended: exit status 0"),
        ("exec", 2, "call 2 of hot was not reached step by step: .* it calls exec"),
        ("alternate stack beside", 2, "the handler of SIGUSR1 runs on a stack beside the call's; use --backend valgrind"),
        ("sleeps", 2, "call 2 of hot was not reached step by step: .* not done after 1 s; raise --timeout"),
        *slower(
            ("sleeps within", 1, "call 1 of hot was not traced step by step: .* not done after 1 s; raise --timeout"),
            ("very often", 90_000_000, "call 90000000 of hot was not reached step by step: .* not done after 1 s"),
        ),
        ("endless", 1, "call 1 of hot was not traced step by step: .* not done after 1 s"),
    ],
)
def test_what_cannot_be_stepped_says_why(tmp_path: Path, name: str, call: int, why: str) -> None:
    program, binary, entry = compiled(tmp_path, STEPPED[name])
    region = functools.partial(binary.region, binary.find("hot"), callees=True)
    parked = cast(AgentProcess, None)  # it is not asked before the call is traced
    timeout, begun = 1 if " 1 s" in why else 60, time.monotonic()
    with pytest.raises(ProgramError, match=why):
        StepBackend().trace(request(parked, region, Rerun([str(program)], entry, call, 100_000, timeout=timeout)))
    assert time.monotonic() - begun < 60
    assert not running(program)
