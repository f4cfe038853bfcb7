"""The words after ``--as``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layout_advise.layoutalgebra.bridges.declarations import identifier, unique
from layout_advise.layoutalgebra.bridges.languages.cpp_libraries import kokkos_source, llama_source
from layout_advise.layoutalgebra.bridges.languages.mdspan import mdspan_source
from layout_advise.layoutalgebra.bridges.languages.numpy_source import numpy_source
from layout_advise.layoutalgebra.bridges.languages.systems import odin_source, soa_derive_source, zig_source
from layout_advise.layoutalgebra.bridges.source import c_source, cpp_source
from layout_advise.layoutalgebra.derive.structure import Relayout

WRITERS: dict[str, Callable[[Relayout, str], str]] = {
    "c": c_source,
    "c++": cpp_source,
    "llama": llama_source,
    "kokkos": kokkos_source,
    "std-mdspan": mdspan_source,
    "zig": zig_source,
    "odin": odin_source,
    "rust-soa_derive": soa_derive_source,
    "numpy": numpy_source,
}


def emitted(layouts: Sequence[Relayout], language: str) -> str:
    """The layouts in a language, one after the other, each named after its structure."""
    taken: set[str] = set()
    texts = [WRITERS[language](layout, unique(f"{identifier(layout.structure.name)}_new", taken)) for layout in layouts]
    return "\n".join(texts)
