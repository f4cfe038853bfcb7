"""The tree of debugging entries: as pyelftools walks it, but where a damaged file leads back."""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Iterator

import pytest
from elftools.common.exceptions import DWARFError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

from layout_advise.tracer.program.entries.tree import children, parent
from tests.support.fuzzing.samples import Samples, samples


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return samples(tmp_path_factory.mktemp("samples"))


def units(data: bytes) -> list[CompileUnit]:
    elf = ELFFile(io.BytesIO(data))
    return list(elf.get_dwarf_info().iter_CUs()) if elf.has_dwarf_info(strict=True) else []


def below(die: DIE) -> Iterator[DIE]:
    for child in children(die):
        yield child
        yield from below(child)


def skipped(die: DIE) -> list[int]:
    """Those directly within it, of which nothing is read but what has to be."""
    return [child.offset for child in itertools.islice(children(die), 10_000)]


def test_the_tree_is_that_of_pyelftools(known: Samples) -> None:
    compared = 0
    for file in known.elf:
        for ours, again, theirs in zip(*(units(file.data) for _ in range(3)), strict=True):
            assert skipped(again.get_top_DIE()) == [one.offset for one in theirs.get_top_DIE().iter_children()]
            every = list(below(ours.get_top_DIE()))
            fresh = [again.get_DIE_from_refaddr(one.offset) for one in reversed(every)]
            for one, alone in zip(every, reversed(fresh), strict=True):
                same = theirs.get_DIE_from_refaddr(one.offset)
                around, expected = parent(alone), same.get_parent()
                assert around is not None
                assert expected is not None
                assert around.offset == expected.offset
                assert skipped(one) == [child.offset for child in same.iter_children()]
            compared += len(every)
            assert parent(again.get_top_DIE()) is None
    assert compared > 300


def siblings(data: bytes) -> list[tuple[int, DIE]]:
    """Entries that name the one after them in four bytes, with these bytes' place in the file."""
    section = ELFFile(io.BytesIO(data)).get_section_by_name(".debug_info")
    assert section is not None
    entries = [one for unit in units(data) for one in below(unit.get_top_DIE())]
    named = [(one.attributes["DW_AT_sibling"], one) for one in entries if "DW_AT_sibling" in one.attributes]
    return [(section["sh_offset"] + attribute.offset, one) for attribute, one in named if attribute.form == "DW_FORM_ref4"]


def test_a_sibling_that_leads_back_is_damage(known: Samples) -> None:
    data = known.elf[0].data
    found = siblings(data)
    assert len(found) > 3
    for place, die in found:
        for target in (die.offset, die.cu.get_top_DIE().offset + die.cu.get_top_DIE().size, die.cu.size + 9):
            damaged = bytearray(data)
            struct.pack_into("<I", damaged, place, target - die.cu.cu_offset)
            unit = next(one for one in units(bytes(damaged)) if one.cu_offset == die.cu.cu_offset)
            with pytest.raises(DWARFError):
                list(itertools.islice(below(unit.get_top_DIE()), 10_000))
