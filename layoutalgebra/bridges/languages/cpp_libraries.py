"""C++ libraries that have names for layouts: LLAMA and Kokkos."""

from __future__ import annotations

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.bridges.declarations import identifier
from layout_advise.layoutalgebra.bridges.languages.scalars import CPP, left_out, scalar
from layout_advise.layoutalgebra.bridges.names import kokkos_views, llama_mapping
from layout_advise.layoutalgebra.bridges.source import buffers_of, members_of
from layout_advise.layoutalgebra.derive.structure import Relayout


def llama_source(layout: Relayout, name: str) -> str:
    """The record, the mapping and a view, in a namespace: ``view(i)(NAME::x{})``. Raises AlgebraError where LLAMA has no
    mapping for the layout."""
    mapping = llama_mapping(layout)
    if mapping is None:
        raise AlgebraError("LLAMA has no mapping for this layout", layout.term, "choose --as c++ or std-mdspan")
    fields = members_of(layout)
    counts = ", ".join(str(dim.count) for dim in layout.structure.dims)
    lines = ["#pragma once", "", "#include <cstddef>", "#include <cstdint>", "#include <llama/llama.hpp>", ""]
    lines += [f"// {layout.term}", *left_out(layout, "//"), f"namespace {identifier(name)} {{"]
    lines += [f"struct {member} {{}};" for _, _, member in fields]
    records = ",\n    ".join(f"llama::Field<{member}, {scalar(field, CPP)}>" for field, _, member in fields)
    lines += [f"using Record = llama::Record<\n    {records}>;"]
    lines += [f"using Extents = llama::ArrayExtents<std::size_t, {counts}>;"]
    lines += [f"using Mapping = {mapping};", "inline auto make_view()", "{"]
    return "\n".join([*lines, "    return llama::allocView(Mapping{});", "}", "}", ""])


def kokkos_source(layout: Relayout, name: str) -> str:
    """The records and the views, in a structure. Raises AlgebraError where Kokkos has no layout for it."""
    views = kokkos_views(layout)
    if views is None:
        raise AlgebraError("Kokkos has no layout for this", layout.term, "choose --as c++ or std-mdspan")
    lines = ["#pragma once", "", "#include <cstdint>", "#include <Kokkos_Core.hpp>", ""]
    lines += [f"// {layout.term}", *left_out(layout, "//")]
    counts = ", ".join(str(dim.count) for dim in layout.structure.dims)
    declared = []
    for number, ((buffer, _), view) in enumerate(zip(buffers_of(layout), views, strict=True)):
        kind, _, plain = view.rpartition(" ")
        held = sorted((one for one in members_of(layout) if one[1].buffer == number), key=lambda one: one[1].offset)
        if f"<{plain}_record" in view:
            lines += [f"struct {plain}_record {{", *(f"    {scalar(f, CPP)} {m};" for f, _, m in held), "};", ""]
        made = "" if "LayoutStride" in kind else f'{{"{buffer}", {counts}}}'
        declared.append(f"    {kind} {plain}{made};")
    return "\n".join([*lines, f"struct {identifier(name)} {{", *declared, "};", ""])
