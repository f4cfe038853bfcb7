# ruff: noqa: E501  (C source, a line a statement list)
"""Programs whose hotspot is left, entered and disturbed in all ways: exceptions, jumps, threads, forks, signals."""

from __future__ import annotations

import subprocess
from pathlib import Path

from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Trace

HEAD = """
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define HOT __attribute__((noipa))
extern "C" { volatile long data[1000], other[1000]; }
"""
BODIES = {
    "plain": """
extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) data[i] = i; }
int main() { for (int k = 0; k < 3; k++) { hot(100 + k); for (int i = 0; i < 500; i++) other[i]++; } }
""",
    "exception": """
HOT void thrower(long n) { if (n > 50) throw n; }
extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) data[i] = i; thrower(n); data[999] = 1; }
int main() { for (int k = 0; k < 3; k++) { try { hot(100 + k); } catch (long x) { for (int i = 0; i < 500; i++) other[i] = x; } } }
""",
    "longjmp": """
static jmp_buf out;
extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) data[i] = i; longjmp(out, 1); }
int main() { for (volatile int k = 0; k < 3; k++) { if (!setjmp(out)) hot(100 + k); else for (int i = 0; i < 500; i++) other[i]++; } }
""",
    "recursion": """
extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) data[i] = i; if (n > 99) hot(1); data[999] = 2; }
int main() { for (int k = 0; k < 3; k++) { hot(100 + k); for (int i = 0; i < 500; i++) other[i]++; } }
""",
    "fork": """
extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) data[i] = i;
    pid_t child = fork(); if (!child) { for (int i = 0; i < 900; i++) other[i]++; _exit(0); } waitpid(child, 0, 0); }
int main() { for (int k = 0; k < 3; k++) hot(100 + k); }
""",
    "threads": """
static volatile int ready = 1, begun;
static void *work(void *) { while (!begun) usleep(100); for (int r = 0; r < 300; r++) for (int i = 0; i < 1000; i++) other[i]++; ready = 1; return 0; }
extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) data[i] = i; begun = 1; while (!ready) usleep(100); }
int main() { hot(100); begun = ready = 0; pthread_t t; pthread_create(&t, 0, work, 0); hot(101); pthread_join(t, 0); hot(102); }
""",
    "starts inside": """
static void *work(void *) { for (int i = 0; i < 500; i++) other[i]++; return 0; }
extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) data[i] = i; pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0); }
int main() { for (int k = 0; k < 3; k++) hot(100 + k); }
""",
    "worker": """
extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) data[i] = i; }
static void *work(void *) { hot(101); for (int i = 0; i < 500; i++) other[i]++; return 0; }
int main() { hot(100); pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0); hot(102); }
""",
    "signal": """
static void handler(int) { data[998] = 7; }
extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) { data[i] = i; if (i == 50) raise(SIGUSR1); } }
int main() { static char room[1 << 16]; stack_t s = {}; s.ss_sp = room; s.ss_size = sizeof room; sigaltstack(&s, 0);
    struct sigaction a = {}; a.sa_handler = handler; a.sa_flags = SA_ONSTACK; sigaction(SIGUSR1, &a, 0);
    for (int k = 0; k < 3; k++) { hot(100 + k); for (int i = 0; i < 500; i++) other[i]++; } }
""",
    "descriptors": """
extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) data[i] = i; for (int fd = 0; fd < 900; fd++) close(fd); }
int main() { for (int k = 0; k < 3; k++) { hot(100 + k); for (int i = 0; i < 500; i++) other[i]++; } }
""",
    "exit": """
extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) data[i] = i; if (n == 101) exit(3); }
int main() { for (int k = 0; k < 3; k++) hot(100 + k); }
""",
}

LOOP = 'extern "C" HOT void hot(long n) { for (long i = 0; i < n; i++) data[i] = i;'
MAIN = "for (int k = 0; k < 3; k++) { hot(100 + k); for (int i = 0; i < 500; i++) other[i]++; } }"
PROGRAMS = {
    **{
        name: BODIES[name]
        for name in (
            "exception",
            "longjmp",
            "recursion",
            "threads",
            "starts inside",
            "fork",
            "signal",
            "descriptors",
            "exit",
        )
    },
    "caught within": f"HOT void thrower(long n) {{ data[997] = 1; throw n; }} {LOOP} try {{ thrower(n); }} catch (long x) {{ data[999] = x; }} }} int main() {{ {MAIN}",
    "mapped": f"{LOOP} long *m = (long *)mmap(0, 8192, 3, 34, -1, 0); for (long i = 0; i < n; i++) m[i] = data[i]; munmap(m, 8192); data[999] = 1; }} int main() {{ {MAIN}",
    "unmapped": f"static long *p; {LOOP} for (long i = 0; i < n; i++) p[i] = i; munmap(p, 8192); p = (long *)mmap(0, 8192, 3, 34, -1, 0); for (long i = 0; i < n; i++) p[i] = 1; }} int main() {{ p = (long *)mmap(0, 8192, 3, 34, -1, 0); {MAIN}",
    "moved": f"static long *p; {LOOP} for (long i = 0; i < n; i++) p[i] = i; p = (long *)realloc(p, 800000 * (n - 98)); for (long i = 0; i < n; i++) p[i + 500]++; }} int main() {{ p = (long *)calloc(1000, 8); {MAIN}",
    "freed": f"static long *p; {LOOP} for (long i = 0; i < n; i++) p[i] = i; free(p); p = (long *)malloc(8000); for (long i = 0; i < n; i++) p[i] = 1; }} int main() {{ p = (long *)malloc(8000); {MAIN}",
    "three bytes": r'extern "C" void hot(long *p); __asm__(".globl hot\n.type hot, @function\nhot: incb (%rdi)\n ret\n.size hot, 3\n"); int main() { for (int k = 0; k < 3; k++) { hot((long *)data + k); for (int i = 0; i < 500; i++) other[i]++; } }',
}


def compiled(folder: Path, text: str) -> tuple[Path, ElfBinary, Entry]:
    source, program = folder / "p.cpp", folder / "p"
    source.write_text(f"{HEAD}#include <sys/mman.h>\n{text}")
    subprocess.run(["g++", "-O1", "-w", "-g", "-o", str(program), str(source), "-lpthread"], check=True)
    binary = ElfBinary.open(program)
    function = binary.find("hot")
    return program, binary, Entry(program, function.start, binary.read(function.start, function.size), "hot")


def accessed(trace: Trace, binary: ElfBinary, base: int) -> dict[str, int]:
    """How often the program's own code accessed each of its variables, and memory that is neither a variable nor stack."""
    own = [m for m in trace.mappings if m.path == str(binary.path)]
    counts = {"data": 0, "other": 0, "elsewhere": 0}
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if stream is None or not own[0].start <= reference.pc < own[-1].end:
            continue
        assert isinstance(stream, FoldedStream)
        for address in stream.expand():
            variable = binary.variable_at(address - base)
            if variable is not None:
                if variable.name in counts:
                    counts[variable.name] += 1
            elif abs(address - trace.registers.gpr[4]) > 1 << 20 and not own[0].start <= address < own[-1].end:
                counts["elsewhere"] += 1
    return counts
