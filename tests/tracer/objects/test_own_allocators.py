"""A program with an allocator of its own keeps it, and its blocks are recorded, also those of its operator new."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.park import park

BIG = 65536
ALLOCATOR = r"""
// Blocks from an arena, each behind its size; another allocator's block ends the program. operator new does not call malloc.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
alignas(4096) static char arena[32 << 20];
static std::size_t used;
extern "C" int owns(const void *p) { return p >= arena && p < arena + sizeof arena; }
static void *taken(std::size_t alignment, std::size_t n)
{
    std::size_t at = (used + 16 + alignment - 1) / alignment * alignment;
    if (n > sizeof arena || at + n > sizeof arena) return nullptr;
    std::memcpy(arena + at - 8, &n, 8);
    used = (at + n + 15) / 16 * 16;
    return arena + at;
}
extern "C" void *malloc(std::size_t n) { return taken(16, n); }
extern "C" void *calloc(std::size_t n, std::size_t m) { return taken(16, n * m); }
extern "C" void *memalign(std::size_t alignment, std::size_t n) { return taken(alignment, n); }
extern "C" void free(void *p) { if (p && !owns(p)) std::abort(); }
extern "C" std::size_t malloc_usable_size(void *p)
{
    std::size_t n;
    if (!owns(p)) std::abort();
    std::memcpy(&n, static_cast<char *>(p) - 8, 8);
    return n;
}
extern "C" void *realloc(void *old, std::size_t n)
{
    void *p = taken(16, n);
    if (old && p) std::memcpy(p, old, malloc_usable_size(old) < n ? malloc_usable_size(old) : n);
    return p;
}
void *operator new(std::size_t n) { return taken(16, n); }
void *operator new[](std::size_t n) { return taken(16, n); }
void operator delete(void *p) noexcept { if (!owns(p)) std::abort(); }
void operator delete[](void *p) noexcept { if (!owns(p)) std::abort(); }
void operator delete(void *p, std::size_t) noexcept { if (!owns(p)) std::abort(); }
void operator delete[](void *p, std::size_t) noexcept { if (!owns(p)) std::abort(); }
"""
PROGRAM = r"""
#include <cstdlib>
#include <malloc.h>
extern "C" int owns(const void *);
#define NOINLINE __attribute__((noipa))
void *blocks[6];
long good;
static void *kept(void *p) { __asm__ volatile("" : "+r"(p)); return p; } // no tail call
NOINLINE void *plainly(size_t n) { return kept(malloc(n)); }
NOINLINE void *made(size_t n) { return kept(new char[n]); }
NOINLINE void *one() { return kept(new double[9]); }
NOINLINE void hot(long k) { *(volatile char *)blocks[0] += (char)k; }
int main()
{
    void *aligned = nullptr;
    blocks[0] = plainly(65536);
    blocks[1] = made(65536);
    blocks[2] = one();
    blocks[3] = realloc(plainly(8), 65536);
    blocks[4] = posix_memalign(&aligned, 4096, 65536) ? nullptr : aligned;
    blocks[5] = calloc(4, 16384);
    char *gone = static_cast<char *>(made(65536)); operator delete[](gone);
    void *away = plainly(65536); free(away);
    for (void *block : blocks) good += owns(block) && malloc_usable_size(block) >= 72;
    for (long k = 0; k < 4; k++) hot(k);
}
"""


@pytest.mark.parametrize("preloaded", [False, True])
def test_blocks_are_the_allocators(preloaded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.cpp").write_text(ALLOCATOR)
    (tmp_path / "used.cpp").write_text(PROGRAM)
    library = ("-shared", "-fPIC", "-fno-builtin", "-o", "libown.so", "own.cpp")
    for flags in (library, ("-o", "used", "used.cpp", "-L.", "-lown", "-Wl,-rpath,.")):
        subprocess.run(["g++", "-w", "-O2", "-g", *flags], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    if preloaded:
        monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "libown.so"))
    program = tmp_path / "used"
    binary = ElfBinary.open(program)
    function = binary.find("hot")
    entry = Entry(program, function.start, binary.read(function.start, function.size), "hot")
    with park([str(program)], entry, 2, timeout=60) as process:
        variables = {v.source_name: v.address + process.load_base for v in binary.variables}
        raw = process.read(variables["blocks"], 48)
        good = int.from_bytes(process.read(variables["good"], 8), "little")
        found = {block.address: block for block in process.allocations()}
        base = process.load_base
    addresses = [int.from_bytes(raw[i : i + 8], "little") for i in range(0, 48, 8)]
    assert good == 6
    assert [found[address].bytes for address in addresses] == [BIG, BIG, 72, BIG, BIG, BIG]
    sites = [binary.function_at(found[address].site - 1 - base) for address in addresses[:3]]
    for site, name in zip(sites, ("plainly", "made", "one"), strict=True):
        assert site is not None
        assert name in site.name
    ours = [block for block in found.values() if block.bytes == BIG]
    assert len(ours) == 5  # those that were given back are forgotten
