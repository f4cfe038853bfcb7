"""Sampling and probing real little programs, and the entries and programs that are not simple."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from layout_advise.errors import ProgramError
from layout_advise.tracer.process import agent, agent_run
from layout_advise.tracer.process.channel import Mode, Orders
from layout_advise.tracer.process.launch import Start, launch
from layout_advise.tracer.process.patching import plan_patch
from layout_advise.tracer.sampling.probe import probe, sample
from layout_advise.tracer.snapshot.compare import compare
from layout_advise.tracer.snapshot.park import park
from tests.support.killable import in_child
from tests.support.tracing.parked_programs import entry_of

PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
volatile double sink;
__attribute__((noipa)) static double work(long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += 1.0 / (i + 1);
    return s;
}
__attribute__((noipa)) long recurse(long n) { return n ? 1 + recurse(n - 1) : 0; }
__attribute__((noipa)) int tiny(int x) { return x; }
__attribute__((noipa)) static void touch(char *p, long pages) { for (long i = 0; i < pages; i++) p[4096 * i] = 1; }
static void *thread(void *n) { for (int k = 0; k < 10; k++) sink += work(*(long *)n); return NULL; }
static void on_prof(int s) { (void)s; sink += 1; }
int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    long n = 1000, big = 200000;
    if (getenv("LD_PRELOAD") || getenv("LAYOUT_ADVISE_AGENT")) return 99;
    if (!strcmp(what, "work")) for (int k = 0; k < 20; k++) sink += work(n);
    if (!strcmp(what, "long")) { signal(SIGPROF, on_prof); for (int k = 0; k < 500; k++) sink += work(big); }
    if (!strcmp(what, "recurse")) for (int k = 0; k < 3; k++) sink += recurse(9);
    if (!strcmp(what, "tiny")) for (int k = 0; k < 10; k++) sink += tiny(k);
    if (!strcmp(what, "touch")) {
        char *p = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(p, 64 * 4096, MADV_NOHUGEPAGE);
        for (int k = 0; k < 4; k++) touch(p, 64);
    }
    if (!strcmp(what, "crash")) { sink += work(n); raise(SIGSEGV); }
    if (!strcmp(what, "hang")) for (;;) sink += work(n);
    if (!strcmp(what, "threads")) {
        pthread_t t[3];
        for (int k = 0; k < 3; k++) pthread_create(&t[k], NULL, thread, &n);
        for (int k = 0; k < 3; k++) pthread_join(t[k], NULL);
    }
    if (!strcmp(what, "fork")) {
        int status;
        sink += work(n);
        if (!fork()) { for (int k = 0; k < 10; k++) sink += work(n); _exit(5); }
        wait(&status);
        if (WEXITSTATUS(status) != 5) return 98;
        status = system("test -z \"$LD_PRELOAD$LAYOUT_ADVISE_AGENT\"");
        if (status) return 97;
        for (int k = 0; k < 4; k++) sink += work(n);
    }
    if (!strcmp(what, "sleeps")) { for (int k = 0; k < 500; k++) sink += work(big); sleep(1); }
    if (!strcmp(what, "halves")) {
        for (int k = 0; k < 1500; k++) sink += work(big);
        if (!fork()) { for (int k = 0; k < 1500; k++) sink += work(big); _exit(0); }
        wait(NULL);
    }
    if (!strcmp(what, "becomes")) {
        for (int k = 0; k < 500; k++) sink += work(big);
        execl(argv[0], argv[0], "halves", NULL);
    }
    if (!strcmp(what, "exec")) execl("/bin/sh", "sh", "-c", "exit 11", NULL);
    if (!strcmp(what, "stdin")) {
        int c, sum = 0;
        while ((c = getchar()) != EOF) sum += c;
        tiny(sum); tiny(sum);
        return sum % 100;
    }
    if (!strcmp(what, "dlopen")) {
        void *so = dlopen(argv[2], RTLD_NOW);
        double (*f)(double *, int) = (double (*)(double *, int))dlsym(so, "plugin");
        double data[4] = {1, 2, 3, 4};
        for (int k = 0; k < 6; k++) sink += f(data, 4);
    }
    printf("done\n");
    return 3;
}
"""

PLUGIN = (
    "double plugin(double *x, int n) { double s = 0; for (int i = 0; i < n; i++) { x[i] *= 2; s += x[i]; } return s; }\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("watch")


@pytest.fixture(scope="module")
def program(folder: Path) -> Path:
    return build(folder, PROGRAM, "watched", "-pthread", "-ldl")


def build(folder: Path, text: str, name: str, *flags: str) -> Path:
    source, target = folder / f"{name}.c", folder / name
    source.write_text(text)
    subprocess.run(["gcc", "-O2", "-g", "-Wall", "-Wextra", str(source), "-o", str(target), *flags], check=True)
    return target


def test_probe_counts_and_times(program: Path) -> None:
    seen = probe([str(program), "work"], entry_of(program, "work"))
    assert (seen.calls, len(seen.times), seen.exit_status, seen.signal) == (20, 20, 3, None)
    assert (seen.threads, seen.recursive, seen.stopped) == (1, False, False)
    assert all(t.tsc > 0 and t.wall_ns > 0 for t in seen.times)
    assert [t.between_ns > 0 for t in seen.times] == [False, *[True] * 19]
    assert 0 < sum(t.between_ns + t.wall_ns for t in seen.times) < 1e9 * seen.seconds
    assert {t.between_ns for t in probe([str(program), "work"], entry_of(program, "work"), quick=True).times} == {0}


def test_page_faults_of_each_call(program: Path) -> None:
    faults = [t.faults for t in probe([str(program), "touch"], entry_of(program, "touch")).times]
    assert (faults[0] >= 64, faults[1:]) == (True, [0, 0, 0])


def test_the_time_of_a_program_that_ends_before_anybody_waits_for_it(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch_and_wait(start: Start, folder: Path, mark: str) -> subprocess.Popen[bytes]:
        process = launch(start, folder, mark)
        process.wait()
        return process

    monkeypatch.setattr(agent_run, "launch", launch_and_wait)
    seen = probe([str(program), "work"], entry_of(program, "work"))
    assert 0 < sum(t.between_ns + t.wall_ns for t in seen.times) < 1e9 * seen.seconds


def test_compiling_the_agent_is_no_part_of_the_time(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first program after an installation took seven seconds, and was said to wait 97 % of its time."""
    compiled = []

    def agent_path() -> Path:
        path = agent.agent_path()
        compiled.append(time.monotonic())
        return path

    monkeypatch.setattr(agent_run, "agent_path", agent_path)
    with agent_run.agent_run(Start([str(program), "work"], discard=True), Orders(Mode.SAMPLE)) as (folder, process):
        process.wait()
        assert 0 < compiled[0] <= folder.begun


def test_a_fork_of_this_process_starts_programs_too(program: Path) -> None:
    """Forks have none of its threads, and it was for the one that starts programs that they waited."""
    command, entry = [str(program), "work"], entry_of(program, "work")
    assert probe(command, entry).calls == 20
    assert in_child(lambda: probe(command, entry).calls, 60) == 20


def test_probe_of_late_calls_stops_the_program(program: Path) -> None:
    seen = probe([str(program), "hang"], entry_of(program, "work"), first=50, timed=5, max_calls=54, timeout=60)
    assert (seen.calls, len(seen.times), seen.stopped) == (54, 5, True)
    seen = probe([str(program), "hang"], entry_of(program, "work"), timed=2, max_calls=1000, timeout=60)
    assert (seen.calls, len(seen.times), seen.stopped) == (1000, 2, True)


TAILS = r"""
typedef struct node { struct node *next; void (*visit)(struct node *, double *); } node;
volatile double sink;
__attribute__((noipa)) void walk(node *n, double *sum) { *sum += 1; if (n->next) n->next->visit(n->next, sum); }
int main(void) {
    node all[10] = {{0}};
    for (int k = 0; k < 10; k++) all[k] = (node){k < 9 ? &all[k + 1] : 0, walk};
    double sum = 0;
    for (int k = 0; k < 4; k++) walk(all, &sum);
    return sum == 40 ? 3 : 4;
}
"""


def test_probe_of_a_function_that_ends_in_a_jump_to_itself(folder: Path) -> None:
    """The return address was taken for the program's own twice, and the call returned to its own end for ever."""
    program = build(folder, TAILS, "tails")
    seen = probe([str(program)], entry_of(program, "walk"), timeout=60)
    assert (seen.exit_status, seen.calls, len(seen.times), seen.recursive) == (3, 40, 4, True)


def test_probe_of_recursion(program: Path) -> None:
    seen = probe([str(program), "recurse"], entry_of(program, "recurse"))
    assert seen.exit_status == 3
    if seen.calls == 30:  # gcc may turn the recursion into a loop
        assert seen.recursive
        assert len(seen.times) == 3


STARTS = r"""
volatile long sink;
__attribute__((noipa)) void step(long n) { sink += n; if (n == 3) { step(0); step(0); sink++; } }
int main(void) {
    for (long n = 3; n < 1003; n++) step(n);
    return 5;
}
"""


@pytest.mark.parametrize("quick", [False, True])
def test_a_function_that_calls_itself_when_it_begins_is_none_that_does(folder: Path, quick: bool) -> None:
    """sqlite: running the first statements runs some of its own, which read the schema; a million do not. Ticks became
    no times, as fewer calls than wanted were timed."""
    program = build(folder, STARTS, "starts")
    seen = probe([str(program)], entry_of(program, "step"), timed=1002, max_calls=1002, quick=quick, timeout=60)
    assert (seen.nested, seen.recursive, len(seen.times)) == (2, False, 1000)
    assert len(seen.quick_ns) == (1000 if quick else 0)


def test_probe_of_threads(program: Path) -> None:
    seen = probe([str(program), "threads"], entry_of(program, "work"))
    assert seen.calls == 30
    assert seen.threads == 3
    assert len(seen.times) == 10  # of the first thread
    assert seen.exit_status == 3


def test_short_function_by_int3(program: Path) -> None:
    entry = entry_of(program, "tiny")
    assert plan_patch(entry).int3
    seen = probe([str(program), "tiny"], entry)
    assert (seen.calls, len(seen.times), seen.exit_status) == (10, 10, 3)
    with park([str(program), "tiny"], entry, 7) as stopped:
        assert stopped.registers().gpr[7] == 6
        assert stopped.read(stopped.registers().rip, len(entry.code)) == entry.code
        with stopped.fork() as fork:
            assert fork.run(0).registers.gpr[0] == 6


def test_crash_is_data_and_a_hang_an_error(program: Path) -> None:
    seen = probe([str(program), "crash"], entry_of(program, "work"))
    assert (seen.calls, seen.signal, seen.exit_status) == (1, 11, None)
    with pytest.raises(ProgramError, match="hung"):
        probe([str(program), "hang"], entry_of(program, "work"), timeout=1)
    with pytest.raises(ProgramError, match="hung"):
        sample([str(program), "hang"], timeout=1)


def test_children_are_left_alone(program: Path) -> None:
    seen = probe([str(program), "fork"], entry_of(program, "work"))
    assert (seen.calls, seen.exit_status) == (5, 3)  # the ten calls of the child are its own
    with park([str(program), "fork"], entry_of(program, "work"), 3) as stopped, stopped.fork() as fork:
        fork.run(0)
    assert sample([str(program), "exec"]).exit_status == 11


def test_stdin(program: Path, folder: Path) -> None:
    spooled = folder / "input"
    spooled.write_bytes(b"AB")
    assert sample([str(program), "stdin"], stdin_path=spooled).exit_status == (65 + 66) % 100
    with park([str(program), "stdin"], entry_of(program, "tiny"), 2, stdin_path=spooled) as stopped:
        assert stopped.registers().gpr[7] == 131
    assert sample([str(program), "stdin"]).exit_status == 0


@pytest.mark.parametrize("late", [False, True])
def test_hotspot_in_a_shared_library(folder: Path, program: Path, late: bool) -> None:
    library = build(folder, PLUGIN, "libplugin.so", "-shared", "-fPIC")
    if late:
        command = [str(program), "dlopen", str(library)]
    else:
        text = "double plugin(double *, int); int main(void) { double x[4] = {1, 2, 3, 4}, s = 0;\n"
        text += "for (int k = 0; k < 6; k++) s += plugin(x, 4); return s > 0 ? 3 : 4; }\n"
        command = [str(build(folder, text, "linked", str(library)))]
    seen = probe(command, entry_of(library, "plugin"))
    assert (seen.calls, seen.exit_status) == (6, 3)
    with park(command, entry_of(library, "plugin"), 4) as stopped:
        with stopped.fork() as a, stopped.fork() as b:
            a.run(0)
            b.run(0)
            found = compare(stopped, a, b)
        assert found.equal
        assert found.bytes_changed >= 4  # four doubles on the live stack, doubled
        assert stopped.load_base + entry_of(library, "plugin").address == stopped.registers().rip


def test_library_never_loaded(program: Path, folder: Path) -> None:
    library = build(folder, PLUGIN, "libother.so", "-shared", "-fPIC")
    with pytest.raises(ProgramError, match=r"libother\.so was not loaded"):
        park([str(program), "work"], entry_of(library, "plugin"), 1)
    with pytest.raises(ProgramError, match=r"libother\.so was not loaded"):
        probe([str(program), "work"], entry_of(library, "plugin"))


def test_samples_resolve(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = sample([str(program), "long"])
    assert run.exit_status == 3
    assert capfd.readouterr().out == "done\n"
    assert run.samples.size > 10
    base = next(m for m in run.mappings if m.path == str(program.resolve()) and m.offset == 0)
    work = entry_of(program, "work")
    inside = (run.samples >= base.start + work.address) & (run.samples < base.start + work.address + len(work.code))
    assert inside.mean() > 0.8
    static = build(program.parent, "int main(void) { return 4; }", "static", "-static")
    told = sample([str(static)])
    assert (told.exit_status, told.samples.size) == (4, 0)
    assert "static" in told.error


def test_the_time_of_other_processes_is_known(program: Path) -> None:
    """Of a child that was waited for, and of the program that took the place of this one."""
    alone, halves, becomes = (sample([str(program), what], discard=True) for what in ("long", "halves", "becomes"))
    assert alone.outside < 0.1 < 0.3 < halves.outside < 0.6 < becomes.outside < 0.95
    assert 0.0 < halves.own_seconds < halves.cpu_seconds


def test_waiting_is_no_standing_in_line(program: Path) -> None:
    """Whatever else runs on the machine."""
    busy, sleeps = (sample([str(program), what], discard=True) for what in ("halves", "sleeps"))
    assert busy.waits < 0.3 < 0.4 < sleeps.waits < 0.95
    assert sleeps.seconds > 1.0 > sleeps.cpu_seconds
    assert sleeps.processors == 1.0


def test_an_own_malloc_table_of_many_blocks(folder: Path) -> None:
    text = r"""
#include <stdlib.h>
__attribute__((noipa)) void hot(void **p) { *(char *)p[0] = 1; }
int main(void) {
    static void *p[300000];
    for (int i = 0; i < 300000; i++) p[i] = malloc(16 + i % 50);
    for (int i = 0; i < 300000; i++) if (i % 3) { free(p[i]); p[i] = NULL; }
    p[0] = realloc(p[0], 5000);
    p[1] = calloc(7, 11);
    p[2] = aligned_alloc(256, 512);
    hot(p);
    return 0;
}
"""
    program = build(folder, text, "blocks")
    with park([str(program)], entry_of(program, "hot"), 1) as stopped:
        blocks = stopped.allocations()
        table = stopped.read(stopped.registers().gpr[7], 8 * 300000)
        pointers = {int.from_bytes(table[i : i + 8], "little") for i in range(0, len(table), 8)} - {0}
        sizes = {b.address: b.bytes for b in blocks}
        first = [int.from_bytes(table[i : i + 8], "little") for i in (0, 8, 16)]
        main = entry_of(program, "main")
        sites = {b.site - stopped.load_base - main.address for b in blocks}
    assert pointers == set(sizes)
    assert [sizes[p] for p in first] == [5000, 77, 512]
    assert first[2] % 256 == 0
    assert all(0 < site <= len(main.code) for site in sites)
