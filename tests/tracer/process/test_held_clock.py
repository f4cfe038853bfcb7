"""The time of day and random numbers are the same at each start of a program under the agent."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from layout_advise.tracer.process.agent_run import agent_run
from layout_advise.tracer.process.channel import Mode, Orders
from layout_advise.tracer.process.launch import Start
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park
from tests.support.tracing.parked_programs import entry_of

SEEDS = r"""
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <sys/random.h>
#include <sys/time.h>
#include <unistd.h>
int main() {
    struct timeval day;
    struct timespec precise;
    long word = 0, other = 0;
    unsigned device = std::random_device()();
    long count = std::chrono::system_clock::now().time_since_epoch().count();
    gettimeofday(&day, nullptr);
    clock_gettime(CLOCK_REALTIME, &precise);
    if (getrandom(&word, sizeof word, 0) != sizeof word || getentropy(&other, sizeof other)) return 1;
    srand(time(nullptr) ^ day.tv_usec);
    printf("%ld %ld %ld %ld %lx %lx %x %d\n", (long)time(nullptr), count, (long)day.tv_usec, precise.tv_nsec, word, other, device, rand());
    return word == other;
}
"""  # noqa: E501

WAITS = r"""
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long ns(int which) { struct timespec t; clock_gettime(which, &t); return t.tv_sec * 1000000000 + t.tv_nsec; }
static struct timespec after(int which, long more) {
    long at = ns(which) + more;
    return (struct timespec){at / 1000000000, at % 1000000000};
}
int main(void) {
    const long wait = 60000000;
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER, monotonic;
    pthread_condattr_t kind;
    sem_t s;
    long begun = ns(CLOCK_MONOTONIC), day = ns(CLOCK_REALTIME), last = 0;
    sem_init(&s, 0, 0);
    pthread_mutex_lock(&m);
    struct timespec t = after(CLOCK_REALTIME, wait);
    if (pthread_cond_timedwait(&c, &m, &t) != ETIMEDOUT || ns(CLOCK_MONOTONIC) - begun < wait) return 2;
    begun = ns(CLOCK_MONOTONIC);
    t = after(CLOCK_REALTIME, wait);
    if (sem_timedwait(&s, &t) != -1 || errno != ETIMEDOUT || ns(CLOCK_MONOTONIC) - begun < wait) return 3;
    begun = ns(CLOCK_MONOTONIC);
    t = after(CLOCK_REALTIME, wait);
    if (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) || ns(CLOCK_MONOTONIC) - begun < wait) return 4;
    pthread_condattr_init(&kind);
    pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
    pthread_cond_init(&monotonic, &kind);
    begun = ns(CLOCK_MONOTONIC);
    t = after(CLOCK_MONOTONIC, wait);
    if (pthread_cond_timedwait(&monotonic, &m, &t) != ETIMEDOUT || ns(CLOCK_MONOTONIC) - begun < wait) return 5;
    while (ns(CLOCK_REALTIME) - day < 5 * wait) /* ends */
        if (ns(CLOCK_REALTIME) <= last) return 6; else last = ns(CLOCK_REALTIME);
    return 0;
}
"""

STORES = r"""
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
double kept[3];
__attribute__((noinline)) void hot(double *to) {
    struct timeval day;
    struct timespec precise;
    gettimeofday(&day, NULL);
    clock_gettime(CLOCK_MONOTONIC, &precise);
    to[0] = day.tv_sec + 1e-6 * day.tv_usec;
    to[1] = precise.tv_sec + 1e-9 * precise.tv_nsec;
    to[2] += 1;
}
int main(void) { for (int k = 0; k < 20; k++) hot(kept); return kept[2] != 20; }
"""


def build(folder: Path, source: str, language: str, *flags: str) -> Path:
    path = folder / "program"
    compiler = {"c": "gcc", "c++": "g++"}[language]
    subprocess.run([compiler, "-O1", "-g", "-x", language, "-", "-o", path, *flags], input=source.encode(), check=True)
    return path


def output(program: Path, folder: Path, expected: int = 0) -> str:
    target = folder / "output"
    with agent_run(Start([str(program)], stdout=target), Orders(Mode.SAMPLE, interval_ns=1_000_000)) as (_, process):
        assert process.wait(30) == expected
    return target.read_text()


@pytest.mark.parametrize("flags", [(), ("-static-libstdc++", "-fno-plt")])
def test_seeds_are_the_same_at_each_start(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, SEEDS.replace("std::random_device()()", "0") if flags else SEEDS, "c++", *flags)
    first = output(program, tmp_path)
    time.sleep(1.1)  # the second hand goes on
    assert output(program, tmp_path) == first
    assert abs(int(first.split()[0]) - time.time()) < 3600


def test_waiting_for_a_time_of_day(tmp_path: Path) -> None:
    """The kernel's clock is ahead of the program's by now: waits take as long as the program means."""
    program = build(tmp_path, WAITS, "c")
    output(program, tmp_path)


def kept_after_a_call(program: Path, parked: AgentProcess) -> bytes:
    with parked.fork() as copy:
        copy.run(0)
        symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines()
        kept = next(int(line.split()[0], 16) for line in symbols if line.endswith(" kept"))
        return copy.read(parked.load_base + kept, 24)


def test_a_call_that_looks_at_the_clock_can_be_repeated(tmp_path: Path) -> None:
    program = build(tmp_path, STORES, "c")
    with park([str(program)], entry_of(program, "hot"), 5) as parked:
        assert kept_after_a_call(program, parked) == kept_after_a_call(program, parked)
