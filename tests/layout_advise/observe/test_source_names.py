"""Addresses and symbols in sentences are told as in the source."""

from __future__ import annotations

import subprocess
from pathlib import Path

from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.source_names import in_source

SOURCE = """#include <vector>
struct pair { int a, b; };
__attribute__((noinline)) void collect(std::vector<pair> &found, int n) {
    for (int k = 0; k < n; k++)
        found.push_back({k, n});
}
int main(int argc, char **) {
    std::vector<pair> found;
    collect(found, 10 * argc);
    return found.size() == 3;
}
"""


def test_a_call_of_the_library_is_told_at_the_programs_own_line(tmp_path: Path) -> None:
    (tmp_path / "app.cpp").write_text(SOURCE)
    subprocess.run(["g++", "-O2", "-g", "-o", "app", "app.cpp"], check=True, cwd=tmp_path)
    binary = ElfBinary.open(tmp_path / "app")
    base, function = 0x555555554000, binary.find("collect")
    headers = 0
    for address in range(function.start, function.start + function.size):
        line = binary.line(address)
        headers += line is not None and line.in_system_header
        assert in_source(f"the access at {address + base:#x} to p", binary, base).startswith("the access at app.cpp:")
    assert headers  # else nothing is tested
    assert in_source("it calls _Znwm there", binary, base) == "it calls operator new(unsigned long) there"
    assert in_source("at 0x10 to p: no index", binary, 0) == "at 0x10 to p: no index"
